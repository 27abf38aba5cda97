/** Shows how much space people's files take, and lets them download everything that is stored about them. */
import { useQuery } from "@tanstack/react-query";
import * as calls from "../../api/accountCalls";
import { download } from "../../api/download";
import { formatBytes } from "../../format/numbers";
import { words } from "../../words";

export function MyData() {
  const storage = useQuery({ queryKey: ["storage"], queryFn: calls.getStorage }).data;
  return (
    <>
      {storage !== undefined && (
        <p className="hint">{words.fileStorage(formatBytes(storage.used_bytes), formatBytes(storage.limit_bytes))}</p>
      )}
      <p className="hint">{words.downloadMyDataHint}</p>
      <button type="button" className="button section-actions" onClick={() => download("api/me/export")}>
        {words.downloadMyData}
      </button>
    </>
  );
}
