/** Records a message: its words become the text of the composer, or it is sent as a voice message. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import * as calls from "../api/calls";
import { describeError } from "../api/errors";
import type { FilePart } from "../api/messageContent";
import { CheckIcon, CloseIcon, MicrophoneIcon, SendVoiceIcon } from "../ui/icons";
import { toast } from "../ui/toasts";
import { words } from "../words";
import { canRecord, useRecorder } from "./useRecorder";

interface Props {
  onText: (text: string) => void; // the words of a recording
  onVoice: (file: FilePart) => void; // a recording with its words, to be sent
  onFailure: (file: FilePart) => void; // a recording without words: nothing is lost
  canSend: boolean;
}

export function VoiceInput({ onText, onVoice, onFailure, canSend }: Props) {
  const { data: speech } = useQuery({ queryKey: ["speech"], queryFn: calls.getSpeech, enabled: canRecord(), staleTime: 60_000 });
  const [isBusy, setBusy] = useState(false);
  const recorder = useRecorder(speech?.max_seconds ?? 60, () => void use(onText));
  const bar = useRef<HTMLDivElement>(null);
  const isRecording = recorder.seconds !== null;
  useEffect(() => {
    if (isRecording) bar.current?.querySelector<HTMLElement>("[data-first]")?.focus();
  }, [isRecording]);

  async function use(onWords: (text: string, file: FilePart) => void) {
    const file = await recorder.finish();
    if (file === null) return toast(words.recordingTooShort);
    setBusy(true);
    try {
      const uploaded = await calls.uploadFile(file);
      try {
        const { text } = await calls.transcribe(uploaded.id);
        if (text === "") toast(words.noSpeechFound);
        else onWords(text, { ...uploaded, transcript: text });
      } catch (error) {
        onFailure(uploaded);
        toast(words.transcriptionFailed(describeError(error)));
      }
    } catch (error) {
      toast(words.uploadFailed(file.name, describeError(error)));
    } finally {
      setBusy(false);
    }
  }

  if (speech?.can_transcribe !== true) return null;
  if (isBusy) {
    return (
      <span className="voice-status" role="status">
        <span className="spinner" aria-hidden="true" />
        {words.transcribing}
      </span>
    );
  }
  if (!isRecording) {
    return (
      <button type="button" className="icon-button" title={words.recordVoice} aria-label={words.recordVoice} onClick={() => void recorder.start()}>
        <MicrophoneIcon />
      </button>
    );
  }
  const buttons: [string, () => void, typeof CloseIcon][] = [
    [words.cancelRecording, recorder.cancel, CloseIcon],
    [words.insertTranscript, () => void use(onText), CheckIcon],
  ];
  if (canSend) buttons.push([words.sendAsVoice, () => void use((_, file) => onVoice(file)), SendVoiceIcon]);
  return (
    <div
      ref={bar}
      className="voice-bar"
      role="group"
      aria-label={words.recording}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        recorder.cancel();
      }}
    >
      <meter className="voice-level" min={0} max={1} value={recorder.level} aria-hidden="true" />
      <span className="voice-time" role="timer" aria-label={words.recording}>
        {formatClock(recorder.seconds ?? 0)}
      </span>
      {buttons.map(([label, onClick, Icon]) => (
        <button
          key={label}
          type="button"
          className="icon-button"
          title={label}
          aria-label={label}
          data-first={label === words.insertTranscript || undefined}
          onClick={onClick}
        >
          <Icon />
        </button>
      ))}
    </div>
  );
}

function formatClock(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
