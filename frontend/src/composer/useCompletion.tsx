/** The menu of slash commands above or below the composer. */
import { useQuery } from "@tanstack/react-query";
import { useId, useLayoutEffect, useRef, useState, type KeyboardEvent } from "react";
import * as calls from "../api/calls";
import type { SavedPrompt } from "../api/types";
import { words } from "../words";
import { completeCommand, findCompletions, type Completion } from "./completion";
import { placeList } from "./placement";
import { useSavedPrompts } from "./SavedPrompts";
import "./completion.css";

const NO_MATCHES: readonly Completion[] = [];

/** The list of commands and saved prompts that start with the text, and the keys that control it. */
export function useCompletion(text: string, setText: (text: string) => void, onPrompt: (prompt: SavedPrompt) => void) {
  const id = useId();
  const isCommand = text.startsWith("/");
  const { data } = useQuery({ queryKey: ["commands"], queryFn: calls.listCommands, enabled: isCommand, staleTime: Infinity });
  const [choice, setChoice] = useState({ text, index: 0 });
  if (choice.text !== text && choice.index !== 0) setChoice({ text, index: 0 }); // another text starts at the first match
  const index = choice.text === text ? choice.index : 0;
  const [closedFor, setClosedFor] = useState<string | null>(null); // the text for which the list was closed
  const prompts = useSavedPrompts(isCommand);
  const matches = closedFor === text ? NO_MATCHES : findCompletions(text, data?.commands ?? [], prompts);
  const highlighted = matches[Math.min(index, matches.length - 1)];
  const isOpen = highlighted !== undefined && (highlighted.prompt !== undefined || completeCommand(highlighted) !== text);
  const listElement = usePlacement(highlighted);

  const complete = (command: Completion) => {
    if (command.prompt !== undefined) {
      setClosedFor(text);
      onPrompt(command.prompt);
      return;
    }
    setText(completeCommand(command));
    setClosedFor(completeCommand(command));
  };

  /** Returns whether the list handled the key. */
  const onKeyDown = (event: KeyboardEvent): boolean => {
    if (!isOpen || (event.key === "Enter" && text === highlighted.name && highlighted.prompt === undefined)) return false; // a complete command is sent
    const keys: Record<string, () => void> = {
      ArrowDown: () => setChoice({ text, index: (index + 1) % matches.length }),
      ArrowUp: () => setChoice({ text, index: (index + matches.length - 1) % matches.length }),
      Tab: () => complete(highlighted),
      Enter: () => complete(highlighted),
      Escape: () => setClosedFor(text),
    };
    const act = keys[event.key];
    if (act === undefined || event.shiftKey) return false;
    event.preventDefault();
    event.stopPropagation();
    act();
    return true;
  };

  const list = isOpen && (
    <ul ref={listElement} className="completion" role="listbox" id={id} aria-label={words.commands}>
      {matches.map((command, position) => (
        <li
          key={command.prompt?.id ?? command.name}
          id={`${id}${position}`}
          role="option"
          aria-selected={command === highlighted}
          onPointerDown={(event) => {
            event.preventDefault(); // the field keeps the focus
            complete(command);
          }}
        >
          <b>{command.name}</b> <i>{command.usage}</i>
          <span>{command.summary}</span>
        </li>
      ))}
    </ul>
  );
  const field = isOpen
    ? ({
        role: "combobox",
        "aria-expanded": true,
        "aria-controls": id,
        "aria-activedescendant": `${id}${matches.indexOf(highlighted)}`,
      } as const)
    : {};
  return { list, field, onKeyDown };
}

/** Keeps the list where there is room for it, and the highlighted command visible in it. */
function usePlacement(highlighted: Completion | undefined) {
  const element = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => {
    const list = element.current;
    const field = list?.parentElement;
    if (list == null || field == null) return;
    const place = () => {
      const top = window.visualViewport?.offsetTop ?? 0;
      const viewport = { top, bottom: top + (window.visualViewport?.height ?? window.innerHeight) };
      const borders = list.offsetHeight - list.clientHeight;
      const { side, maxHeight } = placeList(field.getBoundingClientRect(), viewport, list.scrollHeight + borders);
      list.dataset.side = side;
      list.style.maxHeight = `${maxHeight}px`;
    };
    place();
    list.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
    window.addEventListener("resize", place);
    window.addEventListener("scroll", place, true);
    window.visualViewport?.addEventListener("resize", place);
    return () => {
      window.removeEventListener("resize", place);
      window.removeEventListener("scroll", place, true);
      window.visualViewport?.removeEventListener("resize", place);
    };
  }, [highlighted]);
  return element;
}
