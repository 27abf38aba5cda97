/** A search field with a button that clears it. */
import type { KeyboardEvent } from "react";
import { words } from "../words";
import { CloseIcon, SearchIcon } from "./icons";
import "./SearchField.css";

interface Props {
  id?: string;
  text: string;
  label: string;
  shortcut?: string; // the key that focuses the field
  onChange: (text: string) => void;
  list?: ResultList;
}

/** The results, for fields whose keys move through them while the focus stays in the field. */
interface ResultList {
  id: string;
  isShown: boolean;
  highlightedId: string | undefined; // of the element of the highlighted result
  onKeyDown: (event: KeyboardEvent) => void;
}

export function SearchField({ id, text, label, shortcut, onChange, list }: Props) {
  return (
    <div className="search">
      <SearchIcon />
      <input
        id={id}
        type="search"
        value={text}
        dir="auto"
        placeholder={words.search}
        aria-label={label}
        {...(list !== undefined && {
          role: "combobox",
          "aria-expanded": list.isShown,
          "aria-controls": list.id,
          "aria-autocomplete": "list",
          "aria-activedescendant": list.highlightedId,
        })}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape" && text !== "") onChange("");
          else list?.onKeyDown(event);
        }}
      />
      {text === "" ? (
        shortcut !== undefined && <kbd aria-hidden="true">{shortcut}</kbd>
      ) : (
        <button type="button" className="icon-button small" aria-label={words.clearSearch} onClick={() => onChange("")}>
          <CloseIcon />
        </button>
      )}
    </div>
  );
}
