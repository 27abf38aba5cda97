/** The requests about imports. */
import type { components } from "../api/schema";
import { UnreachableError } from "../api/errors";
import { buildUrl, readError, request } from "../api/http";

export type Import = components["schemas"]["ImportJson"];
export type ImportReport = components["schemas"]["ReportJson"];

const importPath = (id: string, rest = "") => `/imports/${encodeURIComponent(id)}${rest}`;

export const listImports = () => request<{ imports: Import[]; max_bytes: number }>("GET", "/imports");
export const getImport = (id: string) => request<Import>("GET", importPath(id));
export const startImport = (id: string) => request<Import>("POST", importPath(id, "/start"));
export const deleteImport = (id: string) => request<undefined>("DELETE", importPath(id));

/** Uploads a file as it is read from disk, and reports which share of it was sent. */
export function uploadImport(file: File, onProgress: (share: number) => void, signal: AbortSignal): Promise<Import> {
  return new Promise((resolve, reject) => {
    const upload = new XMLHttpRequest(); // `fetch` does not tell how much was sent
    upload.open("POST", buildUrl("api/imports", { name: file.name }));
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

