/** The files of a message, and the files of a message that is being written. */
import { useEffect, useMemo } from "react";
import { buildFileUrl } from "../api/calls";
import type { FilePart } from "../api/messageContent";
import { formatBytes } from "../format/numbers";
import type { DraftFile } from "../outbox/composerDrafts";
import { CloseIcon, DownloadIcon, FileIcon } from "../ui/icons";
import { words } from "../words";
import "./Attachments.css";

const IMAGE_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export function MessageFiles({ files, all }: { files: readonly FilePart[]; all: boolean }) {
  if (files.length === 0) return null;
  return (
    <ul className="files">
      {files.map((file) => {
        const url = buildFileUrl(file.id, all);
        return (
          <li key={file.id}>
            {IMAGE_TYPES.has(file.media_type) ? (
              <a href={url} target="_blank" rel="noopener noreferrer" className="image-link">
                <img src={url} alt={file.name} loading="lazy" />
              </a>
            ) : file.media_type.startsWith("audio/") ? (
              <Recording file={file} url={url} />
            ) : (
              <a href={url} download={file.name} className="file" aria-label={words.download(file.name)}>
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

/** A recording with its player and its words. */
function Recording({ file, url }: { file: FilePart; url: string }) {
  return (
    <figure className="recording">
      <audio controls preload="none" src={url} aria-label={file.name} />
      {file.transcript !== undefined && (
        <figcaption>
          <small>{words.transcript}</small>
          <p dir="auto">{file.transcript}</p>
        </figcaption>
      )}
      {file.transcriptError !== undefined && (
        <figcaption>
          <small>{words.transcriptMissing(file.transcriptError)}</small>
        </figcaption>
      )}
    </figure>
  );
}

export function DraftFiles({ files, onRemove }: { files: readonly DraftFile[]; onRemove: (id: number) => void }) {
  if (files.length === 0) return null;
  return (
    <ul className="files draft-files">
      {files.map((file) => (
        <li key={file.id} className="file" aria-busy={file.uploaded === null}>
          <FilePreview draft={file} />
          <FileName name={file.name} size={file.size} />
          {file.uploaded === null && <span className="spinner" role="img" aria-label={words.uploading} />}
          <button
            type="button"
            className="icon-button small"
            aria-label={words.removeFile(file.name)}
            onClick={() => onRemove(file.id)}
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
      <small>{formatBytes(size)}</small>
    </span>
  );
}

function FilePreview({ draft: { file, uploaded } }: { draft: DraftFile }) {
  const localUrl = useMemo(() => (file !== null && IMAGE_TYPES.has(file.type) ? URL.createObjectURL(file) : null), [file]);
  useEffect(() => {
    if (localUrl === null) return;
    return () => URL.revokeObjectURL(localUrl);
  }, [localUrl]);
  const serverUrl = uploaded !== null && IMAGE_TYPES.has(uploaded.media_type) ? buildFileUrl(uploaded.id) : null;
  const url = localUrl ?? (file === null ? serverUrl : null);
  return url === null ? <FileIcon /> : <img className="thumbnail" src={url} alt="" />;
}
