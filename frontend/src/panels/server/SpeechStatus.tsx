/** Which engines turn recordings into text and read answers aloud now, and what is wrong with the settings above. */
import { useQuery } from "@tanstack/react-query";
import * as calls from "../../api/calls";
import { Link } from "../../ui/Link";
import { setupWords } from "../../words/setup";

export function SpeechStatus() {
  const { data: speech } = useQuery({ queryKey: ["speech"], queryFn: calls.getSpeech });
  if (speech === undefined) return null;
  const isAnyMissing = !speech.can_transcribe || !speech.can_speak;
  return (
    <section className="card" aria-labelledby="speech-title">
      <h2 id="speech-title" className="section-title">
        {setupWords.speechNow}
      </h2>
      <dl className="facts">
        <dt>{setupWords.recordings}</dt>
        <dd>{speech.transcription_engine === null ? setupWords.noTranscription : setupWords.engineIs(speech.transcription_engine)}</dd>
        <dt>{setupWords.readingAloud}</dt>
        <dd>{speech.speaking_engine === null ? setupWords.noSpeaking : setupWords.engineIs(speech.speaking_engine)}</dd>
      </dl>
      {speech.problems.map((problem) => (
        <p key={problem} className="field-problem">
          {problem}
        </p>
      ))}
      {isAnyMissing && (
        <p className="hint">
          {setupWords.speechHint}{" "}
          <Link to="server" section="models" className="text-button">
            {setupWords.addProvider}
          </Link>
        </p>
      )}
    </section>
  );
}
