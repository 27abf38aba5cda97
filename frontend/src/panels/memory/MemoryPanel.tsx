/** What the agent was asked to remember, as far as somebody may know it. */
import { keepPreviousData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type SubmitEvent } from "react";
import { attempt } from "../../conversation/actions";
import { NEW } from "../../conversation/composing";
import { usePaused } from "../../lib/usePaused";
import type { Center } from "../../live/center";
import { useCenter } from "../../live/context";
import { startNew } from "../../shell/Shortcuts";
import { platformName } from "../../sidebar/naming";
import { WarningIcon } from "../../ui/icons";
import { SearchField } from "../../ui/SearchField";
import { words } from "../../words";
import * as calls from "../calls";
import type { Memories } from "../calls";
import { Loaded } from "../parts/Loaded";
import { PanelPage } from "../parts/PanelPage";
import { MemoryRow } from "./MemoryRow";
import { listOf } from "./telling";
import { WordsField } from "./WordsField";

const MEMORIES = ["memories"];
const BEGINNING: string | null = null;

export default function MemoryPanel() {
  const client = useQueryClient();
  const [text, setText] = useState("");
  const wanted = usePaused(text.trim());
  const query = useInfiniteQuery({
    queryKey: [...MEMORIES, wanted],
    queryFn: ({ pageParam }) => calls.memories(wanted, pageParam),
    initialPageParam: BEGINNING,
    getNextPageParam: (page) => page.cursor,
    placeholderData: keepPreviousData,
  });
  const again = () => client.invalidateQueries({ queryKey: MEMORIES });
  return (
    <PanelPage title={words.memory}>
      <p className="panel-intro">{words.memoryIntro}</p>
      <Loaded query={query}>
        {({ pages }) => {
          const memories = pages.flatMap((page) => page.memories);
          const agent = pages[0]?.agent;
          const isEmpty = memories.length === 0 && wanted === "";
          return (
            <>
              {agent !== undefined && <AgentNote agent={agent} />}
              <NewMemory onMade={again} />
              {!isEmpty && <SearchField text={text} label={words.memorySearch} onChange={setText} />}
              {memories.length > 0 && (
                <ul className="card rows-card" aria-label={words.memory}>
                  {memories.map((memory) => (
                    <MemoryRow key={memory.id} memory={memory} onChanged={again} />
                  ))}
                </ul>
              )}
              {memories.length === 0 && wanted !== "" && <p className="panel-note">{words.nothingFound}</p>}
              {isEmpty && <Beginning isUsed={agent?.allowed ?? false} />}
            </>
          );
        }}
      </Loaded>
      {query.hasNextPage && (
        <button type="button" className="button" onClick={() => void query.fetchNextPage()}>
          {words.showMore}
        </button>
      )}
    </PanelPage>
  );
}

/** Where the agent does not remember for whoever looks. */
function AgentNote({ agent }: { agent: Memories["agent"] }) {
  const text = !agent.enabled
    ? words.memoryOff
    : !agent.allowed
      ? words.memoryNotAllowed
      : agent.platforms !== null
        ? words.memoryOnlyOn(listOf(agent.platforms.map(platformName)))
        : null;
  if (text === null) return null;
  return (
    <p className="panel-notice" role="note">
      <WarningIcon />
      <span>{text}</span>
    </p>
  );
}

function NewMemory({ onMade }: { onMade: () => Promise<unknown> }) {
  const [text, setText] = useState("");
  const save = async () => {
    if (text.trim() === "" || !(await attempt(() => calls.remember(text)))) return;
    setText("");
    await onMade();
  };
  return (
    <form
      className="memory-form"
      onSubmit={(event: SubmitEvent) => {
        event.preventDefault();
        void save();
      }}
    >
      <WordsField text={text} label={words.memoryNew} onChange={setText} onDone={() => void save()} />
      <button type="submit" className="button primary" disabled={text.trim() === ""}>
        {words.memoryAdd}
      </button>
    </form>
  );
}

/** What memory is, where there is none yet. */
function Beginning({ isUsed }: { isUsed: boolean }) {
  const center = useCenter();
  return (
    <div className="panel-empty">
      <h2>{words.memoryNone}</h2>
      {isUsed ? (
        <>
          <p>{words.memoryNoneText}</p>
          <p>{words.memoryNoneGroups}</p>
          <button type="button" className="button" onClick={() => tryIt(center)}>
            {words.memoryTrySaying(words.memoryTry)}
          </button>
        </>
      ) : (
        <p>{words.memoryNoneOff}</p>
      )}
    </div>
  );
}

/** Begin a conversation with it, unless something else is being written there. */
function tryIt({ unfinished }: Center): void {
  if (unfinished.text(NEW) === "") unfinished.keepText(NEW, words.memoryTry);
  startNew();
}
