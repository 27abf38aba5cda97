/** Who sent a message that is no answer: a job, or the agent at the request of another conversation. */
import type { SentBy } from "../api/types";
import { Link } from "../ui/Link";
import { words } from "../words";
import { describeSender, findSenderConversation } from "./senders";
import "./Answer.css";

export function SentByLabel({ sentBy, isShared }: { sentBy: SentBy; isShared: boolean }) {
  const conversation = findSenderConversation(sentBy, isShared);
  return (
    <p className="sent-by">
      <span dir="auto">{describeSender(sentBy)}</span>
      {conversation !== null && (
        <Link className="text-button" to={conversation}>
          {words.openRun}
        </Link>
      )}
    </p>
  );
}
