/**
 * Records the microphone.
 *
 * Always true: the browser asks for permission only when a person starts to record, and the microphone is released when the
 * recording ends, is canceled, or its field disappears.
 */
import { useCallback, useEffect, useRef, useState } from "react";
import { toast } from "../ui/toasts";
import { words } from "../words";

const MEDIA_TYPES = ["audio/webm;codecs=opus", "audio/ogg;codecs=opus", "audio/mp4"]; // in the order of preference
const ENDINGS: Record<string, string> = { "audio/webm": "webm", "audio/ogg": "ogg", "audio/mp4": "m4a" };
const BITS_PER_SECOND = 32_000;
const TICK_MS = 100;

export interface Recorder {
  seconds: number | null; // of the running recording; null: nothing is being recorded
  level: number; // how loud it is, from 0 to 1
  start: () => Promise<void>;
  finish: () => Promise<File | null>;
  cancel: () => void;
}

interface Running {
  media: MediaRecorder;
  stream: MediaStream;
  context: AudioContext;
  chunks: Blob[];
}

export function useRecorder(maxSeconds: number, onLimit: () => void): Recorder {
  const running = useRef<Running | null>(null);
  const isWanted = useRef(false); // between the click and the end of the recording
  const isMounted = useRef<boolean>(true);
  const [seconds, setSeconds] = useState<number | null>(null);
  const [level, setLevel] = useState(0);
  const atLimit = useRef(onLimit);
  useEffect(() => {
    atLimit.current = onLimit;
  });

  const release = useCallback(() => {
    isWanted.current = false;
    const { media, stream, context } = running.current ?? {};
    running.current = null;
    if (media !== undefined && media.state !== "inactive") media.stop();
    stream?.getTracks().forEach((track) => track.stop());
    void context?.close();
    setSeconds(null);
    setLevel(0);
  }, []);
  useEffect(() => {
    isMounted.current = true;
    return () => {
      isMounted.current = false;
      release();
    };
  }, [release]);

  const isRecording = seconds !== null;
  useEffect(() => {
    if (!isRecording || running.current === null) return;
    const { context, stream } = running.current;
    const analyser = context.createAnalyser();
    context.createMediaStreamSource(stream).connect(analyser);
    const samples = new Uint8Array(analyser.fftSize);
    const startedAt = Date.now();
    const timer = setInterval(() => {
      analyser.getByteTimeDomainData(samples);
      setLevel(Math.min(1, samples.reduce((loudest, each) => Math.max(loudest, Math.abs(each - 128)), 0) / 64));
      const elapsed = (Date.now() - startedAt) / 1000;
      setSeconds(Math.floor(elapsed));
      if (elapsed >= maxSeconds) atLimit.current();
    }, TICK_MS);
    return () => clearInterval(timer);
  }, [isRecording, maxSeconds]);

  const start = async () => {
    if (isWanted.current) return;
    isWanted.current = true;
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      const mimeType = MEDIA_TYPES.find((type) => MediaRecorder.isTypeSupported(type)) ?? "";
      const media = new MediaRecorder(stream, { mimeType, audioBitsPerSecond: BITS_PER_SECOND });
      const chunks: Blob[] = [];
      media.addEventListener("dataavailable", ({ data }) => chunks.push(data));
      media.start();
      running.current = { media, stream, context: new AudioContext(), chunks };
      if (isMounted.current) setSeconds(0);
      else release(); // the field disappeared while the browser asked
    } catch (error) {
      isWanted.current = false;
      const isBlocked = error instanceof DOMException && error.name === "NotAllowedError";
      toast(isBlocked ? words.microphoneBlocked : words.microphoneMissing);
    }
  };

  const finish = async () => {
    if (running.current === null) return null;
    const { media, chunks } = running.current;
    const stopped = new Promise((resolve) => media.addEventListener("stop", resolve, { once: true }));
    release();
    await stopped;
    const type = media.mimeType.split(";")[0] ?? "";
    const blob = new Blob(chunks, { type });
    return blob.size === 0 ? null : new File([blob], `${words.voiceMessageName}.${ENDINGS[type] ?? "webm"}`, { type });
  };

  return { seconds, level, start, finish, cancel: release };
}
