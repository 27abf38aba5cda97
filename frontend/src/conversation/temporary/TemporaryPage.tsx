/** The page of the temporary conversation: a banner that says what it is, its messages, and the composer. */
import { memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Composer } from "../../composer/Composer";
import { stripMarkdown } from "../../format/text";
import { SidebarButtons } from "../../layout/SidebarButtons";
import { useDocumentTitle } from "../../lib/documentTitle";
import { useStore } from "../../lib/store";
import { Markdown } from "../../markdown/Markdown";
import UserText from "../../markdown/UserText";
import { TEMPORARY_DRAFT } from "../../outbox/composerDrafts";
import type { TemporaryMessage } from "../../temporary/messages";
import { temporaryChat } from "../../temporary/temporaryChat";
import { confirm } from "../../ui/ConfirmDialog";
import { CopyButton } from "../../ui/CopyButton";
import { RetryIcon, TemporaryIcon, TrashIcon } from "../../ui/icons";
import { words } from "../../words";
import { Reasoning } from "../Reasoning";
import "../conversation.css";
import "../Answer.css";
import "../../composer/message.css";
import "./temporary.css";

const MAX_SPOKEN_CHARS = 600; // of an answer that screen readers announce
const END_THRESHOLD_PX = 60; // that still counts as the end

export default function TemporaryPage() {
  const isEmpty = useStore(temporaryChat.state, (state) => state.messages.length === 0);
  const isAnswering = useStore(temporaryChat.state, (state) => state.isAnswering);
  const [sentCount, setSentCount] = useState(0);
  useDocumentTitle(words.temporaryConversation);
  return (
    <section className="conversation temporary">
      <div>
        <header className="bar">
          <SidebarButtons />
          <h1 className="bar-title temporary-title">
            <TemporaryIcon />
            {words.temporaryConversation}
          </h1>
          <span className="spacer" />
          {!isEmpty && (
            <button type="button" className="chip-button" onClick={() => void deleteConversation()}>
              <TrashIcon />
              {words.temporaryDelete}
            </button>
          )}
        </header>
        <p className="temporary-banner" role="note">
          {words.temporaryBanner}
        </p>
      </div>
      <TemporaryMessages sentCount={sentCount} />
      <div className="conversation-foot">
        <Composer
          draftId={TEMPORARY_DRAFT}
          placeholder={words.temporaryPlaceholder}
          isRunning={isAnswering}
          policy={null}
          isTextOnly
          onSend={({ text }) => {
            temporaryChat.send(text);
            setSentCount(sentCount + 1);
          }}
          onStop={() => temporaryChat.stop()}
        />
      </div>
    </section>
  );
}

async function deleteConversation(): Promise<void> {
  const question = { title: words.temporaryDeleteTitle, text: words.temporaryDeleteText, action: words.delete };
  if (await confirm(question)) temporaryChat.clear();
}

/** The messages. The list stays at its end while an answer grows, unless the reader has scrolled up. */
function TemporaryMessages({ sentCount }: { sentCount: number }) {
  const { messages, isAnswering } = useStore(temporaryChat.state);
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const scrollToEnd = () => scroller.current?.scrollTo({ top: scroller.current.scrollHeight });

  useLayoutEffect(() => {
    if (isAtEnd.current) scrollToEnd();
  }, [messages]);

  useEffect(() => {
    if (sentCount === 0) return;
    isAtEnd.current = true;
    scrollToEnd();
  }, [sentCount]);

  return (
    <div className="messages">
      <div
        className="scroller"
        ref={scroller}
        tabIndex={0}
        role="region"
        aria-label={words.conversationLog}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < END_THRESHOLD_PX;
        }}
      >
        {messages.length === 0 && <p className="temporary-hint">{words.temporaryHint}</p>}
        {messages.map((message, index) => {
          const isLast = index === messages.length - 1;
          return (
            <div key={message.id} className="temporary-row">
              {message.role === "user" ? (
                <Question message={message} />
              ) : (
                <TemporaryAnswer message={message} isRunning={isLast && isAnswering} isLast={isLast} />
              )}
            </div>
          );
        })}
      </div>
      <AnswerAnnouncement answer={messages.at(-1)} isAnswering={isAnswering} />
    </div>
  );
}

const Question = memo(function Question({ message }: { message: TemporaryMessage }) {
  return (
    <article className="user-message" aria-label={words.you}>
      <UserText text={message.text} />
      <div className="message-foot">
        <div className="message-actions">
          <CopyButton text={message.text} />
        </div>
      </div>
    </article>
  );
});

interface AnswerProps {
  message: TemporaryMessage;
  isRunning: boolean;
  isLast: boolean;
}

const TemporaryAnswer = memo(function TemporaryAnswer({ message, isRunning, isLast }: AnswerProps) {
  const { text, reasoning, notices, failure, isInterrupted } = message;
  return (
    <article className="answer" aria-label={words.agent} aria-busy={isRunning}>
      {reasoning !== "" && <Reasoning text={reasoning} isRunning={isRunning && text === ""} />}
      {text !== "" && <Markdown text={text} />}
      {isRunning && text === "" && (
        <div className="waiting-dots" role="status" aria-label={words.working}>
          <i />
          <i />
          <i />
        </div>
      )}
      {[...notices, ...(failure === null ? [] : [failure])].map((each) => (
        <p key={each} className="answer-end" role="note">
          {each}
        </p>
      ))}
      {!isRunning && (
        <div className={isLast ? "message-foot shown" : "message-foot"}>
          {isInterrupted && failure === null && <span className="tag">{words.answerStopped}</span>}
          <div className="message-actions">
            {text !== "" && <CopyButton text={text} />}
            {isLast && (
              <button
                type="button"
                className="icon-button small"
                title={words.regenerate}
                aria-label={words.regenerate}
                onClick={() => temporaryChat.retry()}
              >
                <RetryIcon />
              </button>
            )}
          </div>
        </div>
      )}
    </article>
  );
});

/** Lets screen readers say an answer once it is complete. */
function AnswerAnnouncement({ answer, isAnswering }: { answer: TemporaryMessage | undefined; isAnswering: boolean }) {
  const [awaitedId, setAwaitedId] = useState<number | null>(null);
  if (isAnswering && answer !== undefined && answer.id !== awaitedId) setAwaitedId(answer.id);
  const finished = isAnswering || answer?.id !== awaitedId ? undefined : answer;
  return (
    <div className="visually-hidden" role="status">
      {finished !== undefined && `${words.agent}: ${stripMarkdown(finished.text.slice(0, MAX_SPOKEN_CHARS))}`}
    </div>
  );
}
