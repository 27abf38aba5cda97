/**
 * Records a message: its words become the text of the composer, or it is sent as a voice message. It is loaded where recordings
 * can be transcribed (`VoiceButton.tsx`).
 */
import { useEffect, useRef, useState } from "react";
import * as calls from "../api/calls";
import { describeError } from "../api/errors";
import type { FilePart } from "../api/messageContent";
import { CheckIcon, CloseIcon, MicrophoneIcon, SendVoiceIcon } from "../ui/icons";
import { toast } from "../ui/toasts";
import { words } from "../words";
import { useRecorder } from "./useRecorder";
import "./VoiceInput.css";

export interface VoiceProps {
  onText: (text: string) => void; // the words of a recording
  onVoice: (file: FilePart) => void; // a recording with its words, to be sent
  onFailure: (file: FilePart) => void; // a recording without words: nothing is lost
  canSend: boolean;
}

export default function VoiceInput({ onText, onVoice, onFailure, canSend, maxSeconds }: VoiceProps & { maxSeconds: number }) {
  const [isBusy, setBusy] = useState(false);
  const recorder = useRecorder(maxSeconds, () => void use(onText));
  const recordButton = useRef<HTMLButtonElement>(null);
  const insertButton = useRef<HTMLButtonElement>(null);
  const wasRecording = useRef(false);
  const isRecording = recorder.seconds !== null;
  useEffect(() => {
    if (isRecording) insertButton.current?.focus();
    else if (!isBusy && wasRecording.current && document.activeElement === document.body) recordButton.current?.focus();
    wasRecording.current = isRecording || isBusy;
  }, [isRecording, isBusy]);

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
      <button ref={recordButton} type="button" className="icon-button" title={words.recordVoice} aria-label={words.recordVoice} onClick={() => void recorder.start()}>
        <MicrophoneIcon />
      </button>
    );
  }
  return (
    <div
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
      <button type="button" className="icon-button" title={words.cancelRecording} aria-label={words.cancelRecording} onClick={recorder.cancel}>
        <CloseIcon />
      </button>
      <meter className="voice-level" min={0} max={1} value={recorder.level} aria-hidden="true" />
      <span className="voice-time" role="timer" aria-label={words.recording}>
        {formatClock(recorder.seconds ?? 0)}
      </span>
      <span className="spacer" />
      <button ref={insertButton} type="button" className="chip-button" onClick={() => void use(onText)}>
        <CheckIcon />
        {words.insertTranscript}
      </button>
      {canSend && (
        <button
          type="button"
          className="round-button"
          title={words.sendAsVoice}
          aria-label={words.sendAsVoice}
          onClick={() => void use((_, file) => onVoice(file))}
        >
          <SendVoiceIcon />
        </button>
      )}
    </div>
  );
}

function formatClock(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
