/** Asking before something that cannot be taken back. */
import { Store, useStore } from "../lib/store";
import { words } from "../words";
import { Dialog } from "./Dialog";

interface Question {
  title: string;
  text: string;
  action: string;
  answer: (yes: boolean) => void;
}

const asked = new Store<Question | null>(null);

export function confirm(question: Omit<Question, "answer">): Promise<boolean> {
  return new Promise((resolve) => {
    const answer = (yes: boolean) => {
      asked.update(() => null);
      resolve(yes);
    };
    asked.update(() => ({ ...question, answer }));
  });
}

const current = (question: Question | null) => question;

export function Confirmation() {
  const question = useStore(asked, current);
  if (question === null) return null;
  return (
    <Dialog label={question.title} onClose={() => question.answer(false)}>
      <h2>{question.title}</h2>
      <p>{question.text}</p>
      <div className="dialog-actions">
        <button type="button" className="button" onClick={() => question.answer(false)}>
          {words.cancel}
        </button>
        <button type="button" className="button danger" onClick={() => question.answer(true)}>
          {question.action}
        </button>
      </div>
    </Dialog>
  );
}
