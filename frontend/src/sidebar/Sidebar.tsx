/** Every conversation, found by looking, by searching, or by project. */
import { useEffect, useState } from "react";
import { useStore } from "../lib/store";
import { useCenter, useMe } from "../live/context";
import { AccountMenu } from "../shell/AccountMenu";
import { TOGGLE, toggleSidebar } from "../shell/layout";
import { startNew } from "../shell/Shortcuts";
import { ArchiveIcon, MenuIcon, PeopleIcon, PlusIcon } from "../ui/icons";
import { SearchField } from "../ui/SearchField";
import { words } from "../words";
import type { View } from "./arrange";
import { ARCHIVED, chooseView, chosenView, CURRENT } from "./chosen";
import { Projects } from "./Projects";
import { SearchResults } from "./SearchResults";
import { SelectionBar } from "./SelectionBar";
import { SessionList } from "./SessionList";
import { useSelection } from "./useSelection";

const itself = (view: View) => view;

export function Sidebar({ onOrder }: { onOrder: (ids: readonly string[]) => void }) {
  const view = useStore(chosenView, itself);
  const [text, setText] = useState("");
  const selection = useSelection();
  const { end } = selection;
  const all = useStore(useCenter().everybodys, (value) => value);
  useEffect(() => end, [view, all, end]); // what was selected in one list is not for another
  const isOwner = useMe().person.role === "owner";
  return (
    <nav className="sidebar" aria-label={words.conversations}>
      <div className="sidebar-head">
        <span className="brand">Palaver</span>
        <span className="grow" />
        <button
          id={TOGGLE}
          type="button"
          className="icon-button"
          title={words.closeMenu}
          aria-label={words.closeMenu}
          onClick={toggleSidebar}
        >
          <MenuIcon />
        </button>
      </div>
      <button type="button" className="button primary wide" onClick={startNew}>
        <PlusIcon />
        {words.newConversation}
      </button>
      <SearchField id="search" text={text} label={words.searchPlaceholder} shortcut="/" onChange={setText} />
      {text.trim() !== "" ? (
        <SearchResults text={text} />
      ) : (
        <>
          {view.shelf === "current" && (
            <Projects
              chosen={view.project}
              onChoose={chooseProject}
            />
          )}
          {selection.isOn && <SelectionBar selection={selection} isArchive={view.shelf === "archived"} />}
          <SessionList view={view} selection={selection} onOrder={onOrder} />
        </>
      )}
      <div className="sidebar-foot">
        <AccountMenu />
        <span className="grow" />
        {isOwner && <EverybodysSwitch />}
        <button
          type="button"
          className="icon-button"
          title={words.archive}
          aria-label={words.archive}
          aria-pressed={view.shelf === "archived"}
          onClick={() => chooseView(view.shelf === "archived" ? CURRENT : ARCHIVED)}
        >
          <ArchiveIcon />
        </button>
      </div>
    </nav>
  );
}

function chooseProject(project: string | null): void {
  chooseView(project === null ? CURRENT : { shelf: "current", project });
}

function EverybodysSwitch() {
  const center = useCenter();
  const all = useStore(center.everybodys, (value) => value);
  return (
    <button
      type="button"
      className="icon-button"
      role="switch"
      aria-checked={all}
      title={words.everybodys}
      aria-label={words.everybodys}
      onClick={() => center.lookAtAll(!all)}
    >
      <PeopleIcon />
    </button>
  );
}
