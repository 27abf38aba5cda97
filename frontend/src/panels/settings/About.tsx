/** What is running here. */
import type { Me } from "../../api/types";
import { ModelAdvice } from "../../home/ModelAdvice";
import { whoAnswers } from "../../home/whoAnswers";
import { words } from "../../words";

export function About({ me }: { me: Me }) {
  return (
    <>
      <dl className="facts">
        <dt>{words.aboutVersion}</dt>
        <dd>{me.version}</dd>
        <dt>{words.model}</dt>
        <dd>{me.agent.model}</dd>
        <dt>{words.aboutWhoAnswers}</dt>
        <dd dir="auto">{whoAnswers(me)}</dd>
      </dl>
      <div className="advice">
        <ModelAdvice me={me} />
      </div>
    </>
  );
}
