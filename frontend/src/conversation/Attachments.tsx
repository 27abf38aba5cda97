/** Files: those of a message, and those that are being added to one. */
import { useEffect, useMemo } from "react";
import { address } from "../api/client";
import { bytes } from "../lib/numbers";
import { CloseIcon, DownloadIcon, FileIcon } from "../ui/icons";
import { words } from "../words";
import type { FilePart } from "./content";
import type { Adding } from "./unfinished";

const SHOWN = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** The files of a message. */
export function Files({ files, all }: { files: readonly FilePart[]; all: boolean }) {
  if (files.length === 0) return null;
  return (
    <ul className="files">
      {files.map((file) => {
        const source = address(`api/attachments/${file.id}`, { all });
        return (
          <li key={file.id}>
            {SHOWN.has(file.type) ? (
              <a href={source} target="_blank" rel="noopener noreferrer" className="picture">
                <img src={source} alt={file.name} loading="lazy" />
              </a>
            ) : (
              <a href={source} download={file.name} className="file" aria-label={words.download(file.name)}>
                <FileIcon />
                <FileName name={file.name} size={file.size} />
                <DownloadIcon />
              </a>
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** Files that are being added to a message. */
export function AddedFiles({ adding, onRemove }: { adding: readonly Adding[]; onRemove: (id: number) => void }) {
  if (adding.length === 0) return null;
  return (
    <ul className="files adding">
      {adding.map((each) => (
        <li key={each.id} className="file" aria-busy={each.uploaded === null}>
          <Preview adding={each} />
          <FileName name={each.name} size={each.size} />
          {each.uploaded === null && <span className="spinner" role="img" aria-label={words.uploading} />}
          <button
            type="button"
            className="icon-button small"
            aria-label={words.removeFile(each.name)}
            onClick={() => onRemove(each.id)}
          >
            <CloseIcon />
          </button>
        </li>
      ))}
    </ul>
  );
}

function FileName({ name, size }: { name: string; size: number }) {
  return (
    <span className="file-name">
      <span>{name}</span>
      <small>{bytes(size)}</small>
    </span>
  );
}

function Preview({ adding: { file, uploaded } }: { adding: Adding }) {
  const made = useMemo(() => (file !== null && SHOWN.has(file.type) ? URL.createObjectURL(file) : null), [file]);
  useEffect(() => {
    if (made === null) return;
    return () => URL.revokeObjectURL(made);
  }, [made]);
  const kept = uploaded !== null && SHOWN.has(uploaded.type) ? address(`api/attachments/${uploaded.id}`) : null;
  const source = made ?? (file === null ? kept : null);
  return source === null ? <FileIcon /> : <img className="thumb" src={source} alt="" />;
}
