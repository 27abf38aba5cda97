/** The dialog that imports a file: upload, what would come in, and what came in. Closing it stops nothing on the server. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { attempt } from "../../api/attempt";
import { describeError } from "../../api/errors";
import { describeErrorCode } from "../../format/errors";
import { formatCount } from "../../format/numbers";
import { closeImportDialog, openImport, type ShownImport } from "../../imports/importDialog";
import * as calls from "../../imports/importCalls";
import type { Import } from "../../imports/importCalls";
import { useLiveClient } from "../../live/context";
import { Dialog } from "../../ui/Dialog";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import { hasNews, ReportView } from "./ReportView";
import "../shared/panels.css";
import "./imports.css";

const POLL_MS = 500;

export default function ImportDialog({ shown }: { shown: ShownImport }) {
  return (
    <Dialog label={words.importConversations} onClose={closeImportDialog}>
      {shown.file !== null ? <FileOffer key={shown.file.name} file={shown.file} /> : <ImportView id={shown.id} />}
    </Dialog>
  );
}

/** Asks whether to upload a file, and uploads it. */
function FileOffer({ file }: { file: File }) {
  const [share, setShare] = useState<number | null>(null); // null: not uploading
  const [error, setError] = useState<string | null>(null);
  const upload = useRef<AbortController | null>(null);
  useEffect(() => () => upload.current?.abort(), []);
  const start = async () => {
    const running = new AbortController();
    upload.current = running;
    setError(null);
    setShare(0);
    try {
      const { id } = await calls.uploadImport(file, setShare, running.signal);
      openImport(id);
    } catch (failure) {
      if (running.signal.aborted) return;
      setShare(null);
      setError(describeError(failure));
    }
  };
  return (
    <>
      <h2 dir="auto">{words.importOfferTitle(file.name)}</h2>
      <p>{words.importOfferText}</p>
      {error !== null && (
        <p className="import-error" role="alert">
          {error}
        </p>
      )}
      {share !== null && <Progress label={words.importUploading} share={share} text={`${Math.round(share * 100)} %`} />}
      <div className="dialog-actions">
        <button type="button" className="button" onClick={closeImportDialog}>
          {words.cancel}
        </button>
        <button type="button" className="button primary" disabled={share !== null} onClick={() => void start()}>
          {words.importUpload}
        </button>
      </div>
    </>
  );
}

/** An import on the server, from its check to its result. */
function ImportView({ id }: { id: string }) {
  const client = useLiveClient();
  const queryClient = useQueryClient();
  const runOnce = useSingleFlight();
  const { data, error, refetch } = useQuery({
    queryKey: ["imports", id],
    queryFn: () => calls.getImport(id),
    refetchInterval: ({ state }) => (isRunning(state.data) ? POLL_MS : false),
  });
  const isDone = data?.state === "done";
  useEffect(() => {
    if (!isDone) return;
    void client.lists.refresh();
    void queryClient.invalidateQueries({ queryKey: ["imports"], exact: true });
  }, [isDone, client, queryClient]);
  const start = () => attempt(() => calls.startImport(id).then(() => refetch()));
  const discard = async () => {
    await attempt(() => calls.deleteImport(id));
    await queryClient.invalidateQueries({ queryKey: ["imports"], exact: true });
    closeImportDialog();
  };
  if (data === undefined) return <p role="status">{error === null ? words.loading : describeError(error)}</p>;
  switch (data.state) {
    case "checking":
    case "importing": {
      const label = data.state === "checking" ? words.importChecking : words.importRunning;
      return (
        <>
          <h2 dir="auto">{data.name}</h2>
          <Progress label={label} share={data.total ? data.progress / data.total : null} text={describeProgress(data)} />
          {data.state === "importing" && <p className="hint">{words.importRunningHint}</p>}
          <Actions />
        </>
      );
    }
    case "ready":
      return (
        <>
          <h2>{words.importReadyTitle(words.importPrograms[data.format ?? ""] ?? data.name)}</h2>
          {data.report !== null && <ReportView report={data.report} />}
          {data.report !== null && hasNews(data.report) ? (
            <>
              <p className="hint">{words.importOthers}</p>
              <div className="dialog-actions">
                <button type="button" className="button" onClick={() => void runOnce(discard)}>
                  {words.cancel}
                </button>
                <button type="button" className="button primary" onClick={() => void runOnce(start)}>
                  {words.importStart}
                </button>
              </div>
            </>
          ) : (
            <div className="dialog-actions">
              <button type="button" className="button primary" onClick={() => void runOnce(discard)}>
                {words.close}
              </button>
            </div>
          )}
        </>
      );
    case "done":
      return (
        <>
          <h2>{words.importDoneTitle}</h2>
          {data.report !== null && <ReportView report={data.report} />}
          <Actions />
        </>
      );
    case "failed":
      return (
        <>
          <h2>{words.importFailedTitle}</h2>
          <p className="import-error" role="alert" dir="auto">
            {data.error === null ? data.name : describeErrorCode(data.error.code, data.error.facts, data.error.message)}
          </p>
          <Actions />
        </>
      );
  }
}

function Actions() {
  return (
    <div className="dialog-actions">
      <button type="button" className="button primary" onClick={closeImportDialog}>
        {words.close}
      </button>
    </div>
  );
}

function Progress({ label, share, text }: { label: string; share: number | null; text: string }) {
  return (
    <div className="import-progress" role="status">
      <span>{label}</span>
      <progress aria-label={label} max={1} {...(share !== null && { value: share })} />
      <small>{text}</small>
    </div>
  );
}

function isRunning(found: Import | undefined): boolean {
  return found === undefined || found.state === "checking" || found.state === "importing";
}

function describeProgress({ progress, total }: Import): string {
  return words.importProgress(formatCount(progress), total === null ? null : formatCount(total));
}
