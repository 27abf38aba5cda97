/** Rewrites the database file without what deleted messages have left in it, for owners: explains, asks, then does it. */
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { formatBytes } from "../../format/numbers";
import { confirm } from "../../ui/ConfirmDialog";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { setupWords } from "../../words/setup";
import { rewriteDatabaseFile } from "../shared/calls";

export function RewriteFile() {
  const [isBusy, setBusy] = useState(false);
  const runOnce = useSingleFlight();
  const run = async () => {
    const action = setupWords.rewriteFile;
    if (!(await confirm({ title: `${action}?`, text: setupWords.rewriteFileText, action }))) return;
    setBusy(true);
    await attempt(async () => {
      const { saved_bytes } = await rewriteDatabaseFile();
      toast(saved_bytes === null ? setupWords.rewriteFilePostgres : setupWords.rewriteFileDone(formatBytes(Math.max(0, saved_bytes))));
    });
    setBusy(false);
  };
  return (
    <section className="card" aria-labelledby="rewrite-file-title">
      <h2 id="rewrite-file-title" className="section-title">
        {setupWords.rewriteFileTitle}
      </h2>
      <p>{setupWords.rewriteFileIntro}</p>
      <button type="button" className="button" disabled={isBusy} onClick={() => void runOnce(run)}>
        {isBusy ? setupWords.pruneRunning : setupWords.rewriteFile}
      </button>
    </section>
  );
}
