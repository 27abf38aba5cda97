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
import { useOnce } from "../../ui/useOnce";
import { words } from "../../words";
import * as calls from "../calls";
import type { Memories } from "../calls";
import { Loaded } from "../parts/Loaded";
import { PanelPage } from "../parts/PanelPage";
import { ShowMore } from "../parts/ShowMore";
import { MemoryRow } from "./MemoryRow";
import { listOf } from "./telling";
import { WordsField } from "./WordsField";
import "./memory.css";

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
  const memories = query.data?.pages.flatMap((page) => page.memories) ?? [];
  const agent = query.data?.pages[0]?.agent;
  return (
    <PanelPage title={words.memory}>
      <p className="panel-intro">{words.memoryIntro}</p>
      {agent !== undefined && <AgentNote agent={agent} />}
      <NewMemory onMade={again} />
      {(memories.length > 0 || text !== "") && <SearchField text={text} label={words.memorySearch} onChange={setText} />}
      <Loaded query={query}>
        {() => {
          if (memories.length === 0) {
            return wanted === "" ? <Beginning isUsed={agent?.allowed ?? false} /> : <p className="panel-note">{words.nothingFound}</p>;
          }
          return (
            <ul className="card rows-card" aria-label={words.memory}>
              {memories.map((memory) => (
                <MemoryRow key={memory.id} memory={memory} onChanged={again} />
              ))}
            </ul>
          );
        }}
      </Loaded>
      <ShowMore query={query} />
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
  const once = useOnce();
  const remember = async () => {
    if (text.trim() === "" || !(await attempt(() => calls.remember(text)))) return;
    setText((written) => (written === text ? "" : written)); // who goes on writing meanwhile loses nothing
    await onMade();
  };
  const save = () => void once(remember);
  return (
    <form
      className="memory-form"
      onSubmit={(event: SubmitEvent) => {
        event.preventDefault();
        save();
      }}
    >
      <WordsField text={text} label={words.memoryNew} onChange={setText} onDone={save} />
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
