/** The requests about imports. */
import { UnreachableError } from "../api/errors";
import { buildUrl, readError, request } from "../api/http";
import type { Schemas } from "../api/types";

export type Import = Schemas["ImportJson"];

const inPath = (id: string) => ({ path: { import_id: id } });

export const listImports = () => request("GET", "/api/imports");
export const getImport = (id: string) => request("GET", "/api/imports/{import_id}", inPath(id));
export const startImport = (id: string) => request("POST", "/api/imports/{import_id}/start", inPath(id));
export const deleteImport = (id: string) => request("DELETE", "/api/imports/{import_id}", inPath(id));

/** Uploads a file as it is read from disk, and reports which share of it was sent. */
export function uploadImport(file: File, onProgress: (share: number) => void, signal: AbortSignal): Promise<Import> {
  return new Promise((resolve, reject) => {
    const upload = new XMLHttpRequest(); // `fetch` does not tell how much was sent
    upload.open("POST", buildUrl("POST", "/api/imports", { query: { name: file.name } }));
    upload.setRequestHeader("Content-Type", "application/octet-stream");
    upload.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 0 : loaded / total);
    upload.onerror = () => reject(new UnreachableError("the server cannot be reached"));
    upload.onabort = () => reject(new UnreachableError("the upload was canceled"));
    upload.onload = () => {
      const response = new Response(upload.responseText, { status: upload.status });
      if (response.ok) resolve(JSON.parse(upload.responseText) as Import);
      else void readError(response).then(reject, reject);
    };
    signal.addEventListener("abort", () => upload.abort());
    upload.send(file);
  });
}
