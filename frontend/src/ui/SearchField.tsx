/** A search field with a button that clears it. */
import { words } from "../words";
import { CloseIcon, SearchIcon } from "./icons";

interface Props {
  id?: string;
  text: string;
  label: string;
  shortcut?: string; // the key that focuses the field
  onChange: (text: string) => void;
}

export function SearchField({ id, text, label, shortcut, onChange }: Props) {
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
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onChange("");
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
