/** Reads an answer aloud, piece after piece. One answer at a time is read. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import * as calls from "../api/calls";
import { describeError } from "../api/errors";
import { SpeakerIcon, StopIcon } from "../ui/icons";
import { toast } from "../ui/toasts";
import { words } from "../words";

let stopOther: () => void = () => undefined;

export function SpeakButton({ sessionId, seq }: { sessionId: string; seq: number }) {
  const { data: speech } = useQuery({ queryKey: ["speech"], queryFn: calls.getSpeech, staleTime: 60_000 });
  const [isReading, setReading] = useState(false);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  if (speech?.can_speak !== true) return null;

  const stop = () => {
    abort.current?.abort();
    setReading(false);
  };
  const read = async () => {
    stopOther();
    const controller = new AbortController();
    abort.current = controller;
    stopOther = stop;
    setReading(true);
    try {
      await readAloud(sessionId, seq, controller.signal);
    } catch (error) {
      if (!controller.signal.aborted) toast(words.readAloudFailed(describeError(error)));
    }
    if (abort.current === controller) setReading(false);
  };
  const label = isReading ? words.stopReading : words.readAloud;
  return (
    <button
      type="button"
      className="icon-button small"
      title={label}
      aria-label={label}
      aria-pressed={isReading}
      onClick={() => (isReading ? stop() : void read())}
    >
      {isReading ? <StopIcon /> : <SpeakerIcon />}
    </button>
  );
}

async function readAloud(sessionId: string, seq: number, signal: AbortSignal): Promise<void> {
  let next = calls.speakAnswer(sessionId, seq, 0, signal);
  for (let piece = 0; ; piece += 1) {
    const { audio, pieces } = await next;
    const isLast = piece + 1 >= pieces;
    if (!isLast) {
      next = calls.speakAnswer(sessionId, seq, piece + 1, signal);
      next.catch(() => undefined); // reported when its turn comes
    }
    await play(audio, signal);
    if (isLast || signal.aborted) return;
  }
}

function play(audio: Blob, signal: AbortSignal): Promise<void> {
  const url = URL.createObjectURL(audio);
  const player = new Audio(url);
  return new Promise<void>((resolve, reject) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
    player.addEventListener("ended", () => resolve());
    player.addEventListener("error", () => reject(new Error(player.error?.message ?? "")));
    player.play().catch(reject);
  }).finally(() => {
    player.pause();
    URL.revokeObjectURL(url);
  });
}
