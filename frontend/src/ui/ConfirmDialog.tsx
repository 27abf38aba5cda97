/** Asks for confirmation before something that cannot be undone. */
import { PersonalStore } from "../lib/personal";
import { useStore } from "../lib/store";
import { words } from "../words";
import { Dialog } from "./Dialog";

interface Question {
  title: string;
  text: string;
  action: string;
  answer: (isConfirmed: boolean) => void;
}

const openQuestion = new PersonalStore<Question | null>(null);

/** Shows a question, and returns whether the person confirmed it. */
export function confirm(question: Omit<Question, "answer">): Promise<boolean> {
  return new Promise((resolve) => {
    const answer = (isConfirmed: boolean) => {
      openQuestion.update(() => null);
      resolve(isConfirmed);
    };
    openQuestion.update(() => ({ ...question, answer }));
  });
}

export function ConfirmDialog() {
  const question = useStore(openQuestion);
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
