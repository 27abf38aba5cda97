/** The microphone of the composer, where recordings can be transcribed. What it needs is loaded only there. */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import * as calls from "../api/calls";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import type { VoiceProps } from "./VoiceInput";

const VoiceInput = lazy(() => import("./VoiceInput"));

export function VoiceButton(props: VoiceProps) {
  const { data: speech } = useQuery({ queryKey: ["speech"], queryFn: calls.getSpeech, enabled: canRecord(), staleTime: 60_000 });
  if (speech?.can_transcribe !== true) return null;
  return (
    <ErrorBoundary fallback={null}>
      <Suspense>
        <VoiceInput {...props} maxSeconds={speech.max_seconds} />
      </Suspense>
    </ErrorBoundary>
  );
}

function canRecord(): boolean {
  return isSecureContext && "mediaDevices" in navigator && "MediaRecorder" in window;
}
