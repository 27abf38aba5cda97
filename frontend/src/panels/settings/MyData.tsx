/** Lets people download everything that is stored about them. */
import { download } from "../../api/download";
import { words } from "../../words";

export function MyData() {
  return (
    <>
      <p className="hint">{words.downloadMyDataHint}</p>
      <button type="button" className="button section-actions" onClick={() => download("api/me/export")}>
        {words.downloadMyData}
      </button>
    </>
  );
}
