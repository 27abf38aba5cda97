/** The panel of memories: what the agent was asked to remember, as far as the reader may know it. */
import { keepPreviousData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type SubmitEvent } from "react";
import { attempt } from "../../api/attempt";
import { getPlatformName } from "../../format/platforms";
import { startConversation } from "../../layout/focus";
import { useDebounced } from "../../lib/useDebounced";
import { useLiveClient } from "../../live/context";
import type { LiveClient } from "../../live/liveClient";
import { NEW_DRAFT } from "../../outbox/composerDrafts";
import { WarningIcon } from "../../ui/icons";
import { SearchField } from "../../ui/SearchField";
import { SegmentedControl } from "../../ui/SegmentedControl";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import type { Memories, MemoryOrigin } from "../shared/calls";
import * as calls from "../shared/calls";
import { LoadMoreButton } from "../shared/LoadMoreButton";
import { PanelPage } from "../shared/PanelPage";
import { QueryResult } from "../shared/QueryResult";
import { joinNames } from "./descriptions";
import { MemoryField } from "./MemoryField";
import { MemoryRow } from "./MemoryRow";
import "./memory.css";

const MEMORIES_KEY = ["memories"];
const FIRST_PAGE: string | null = null;

type OriginChoice = MemoryOrigin | "all";

export default function MemoryPanel() {
  const queryClient = useQueryClient();
  const [text, setText] = useState("");
  const [origin, setOrigin] = useState<OriginChoice>("all");
  const searchText = useDebounced(text.trim());
  const query = useInfiniteQuery({
    queryKey: [...MEMORIES_KEY, searchText, origin],
    queryFn: ({ pageParam }) => calls.listMemories(searchText, origin === "all" ? null : origin, pageParam),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
  const refresh = () => queryClient.invalidateQueries({ queryKey: MEMORIES_KEY });
  const memories = query.data?.pages.flatMap((page) => page.memories) ?? [];
  const agent = query.data?.pages[0]?.agent;
  const isFiltered = text !== "" || searchText !== "" || origin !== "all";
  return (
    <PanelPage title={words.memory}>
      <p className="panel-intro">{words.memoryIntro}</p>
      {agent?.allowed === true && <p className="panel-intro">{agent.learn ? words.memoryLearnOn : words.memoryLearnOff}</p>}
      {agent !== undefined && <AgentNotice agent={agent} />}
      <NewMemoryForm onCreated={refresh} />
      {(memories.length > 0 || isFiltered) && (
        <div className="memory-filters">
          <SearchField text={text} label={words.memorySearch} onChange={setText} />
          <SegmentedControl
            label={words.memoryOrigin}
            value={origin}
            onChange={setOrigin}
            choices={[
              ["all", words.memoryOriginAll],
              ["person", words.memoryOriginPerson],
              ["agent", words.memoryOriginAgent],
              ["learned", words.memoryOriginLearned],
            ]}
          />
        </div>
      )}
      <QueryResult query={query}>
        {() => {
          if (memories.length === 0) {
            return !isFiltered ? <EmptyMemory isMemoryUsed={agent?.allowed ?? false} /> : <p className="panel-note">{words.noResults}</p>;
          }
          return (
            <ul className="card rows-card" aria-label={words.memory}>
              {memories.map((memory) => (
                <MemoryRow key={memory.id} memory={memory} onChange={refresh} />
              ))}
            </ul>
          );
        }}
      </QueryResult>
      <LoadMoreButton query={query} />
    </PanelPage>
  );
}

/** Says why the agent does not use its memory for the reader. */
function AgentNotice({ agent }: { agent: Memories["agent"] }) {
  const text = !agent.enabled
    ? words.memoryDisabled
    : !agent.allowed
      ? words.memoryNotAllowed
      : agent.platforms !== null
        ? words.memoryOnlyOn(joinNames(agent.platforms.map(getPlatformName)))
        : null;
  if (text === null) return null;
  return (
    <p className="panel-notice" role="note">
      <WarningIcon />
      <span>{text}</span>
    </p>
  );
}

function NewMemoryForm({ onCreated }: { onCreated: () => Promise<unknown> }) {
  const [text, setText] = useState("");
  const runOnce = useSingleFlight();
  const create = async () => {
    if (text.trim() === "" || !(await attempt(() => calls.createMemory(text)))) return;
    setText((current) => (current === text ? "" : current)); // keeps what was typed meanwhile
    await onCreated();
  };
  const save = () => void runOnce(create);
  return (
    <form
      className="memory-form"
      onSubmit={(event: SubmitEvent) => {
        event.preventDefault();
        save();
      }}
    >
      <MemoryField text={text} label={words.memoryNew} onChange={setText} onDone={save} />
      <button type="submit" className="button primary" disabled={text.trim() === ""}>
        {words.memoryAdd}
      </button>
    </form>
  );
}

/** Explains memory while there are no entries. */
function EmptyMemory({ isMemoryUsed }: { isMemoryUsed: boolean }) {
  const client = useLiveClient();
  return (
    <div className="panel-empty">
      <h2>{words.memoryEmpty}</h2>
      {isMemoryUsed ? (
        <>
          <p>{words.memoryEmptyText}</p>
          <p>{words.memoryEmptyGroups}</p>
          <button type="button" className="button" onClick={() => tryExample(client)}>
            {words.memoryTryPrompt(words.memoryExamplePrompt)}
          </button>
        </>
      ) : (
        <p>{words.memoryEmptyDisabled}</p>
      )}
    </div>
  );
}

/** Starts a conversation with the example, unless another text is already in its composer. */
function tryExample({ composerDrafts }: LiveClient): void {
  if (composerDrafts.getText(NEW_DRAFT) === "") composerDrafts.setText(NEW_DRAFT, words.memoryExamplePrompt);
  startConversation();
}
