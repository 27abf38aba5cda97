import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ComposerDrafts, TEMPORARY_DRAFT } from "./composerDrafts";

let finishUpload: ((response: Response) => void)[];

beforeEach(() => {
  localStorage.clear();
  finishUpload = [];
  vi.stubGlobal("fetch", () => new Promise<Response>((resolve) => finishUpload.push(resolve)));
});

afterEach(() => vi.unstubAllGlobals());

const createFile = (name: string) => new File(["x"], name);
const listNames = (drafts: ComposerDrafts, draftId: string) => drafts.getFiles(draftId).map((each) => each.name);

it("keeps a text until it is sent, and shows it to no other person", () => {
  new ComposerDrafts("p_1").setText("new", "half a thought");
  expect(new ComposerDrafts("p_1").getText("new")).toBe("half a thought");
  expect(new ComposerDrafts("p_2").getText("new")).toBe("");
  new ComposerDrafts("p_1").setText("new", "");
  expect(localStorage.length).toBe(0);
});

it("keeps the text of the temporary conversation only while the page is open", () => {
  const drafts = new ComposerDrafts("p_1");
  drafts.setText(TEMPORARY_DRAFT, "a secret");
  expect(drafts.getText(TEMPORARY_DRAFT)).toBe("a secret");
  expect(localStorage.length).toBe(0);
  expect(new ComposerDrafts("p_1").getText(TEMPORARY_DRAFT)).toBe("");
});

it("keeps files with the conversation they were added to, even while they are uploading", async () => {
  const drafts = new ComposerDrafts("p_1");
  drafts.addFiles("one", [createFile("a.txt"), createFile("b.txt")]);
  drafts.addFiles("two", [createFile("c.txt")]);
  expect([listNames(drafts, "one"), listNames(drafts, "two")]).toEqual([["a.txt", "b.txt"], ["c.txt"]]);
  finishUpload[0]?.(new Response(JSON.stringify({ id: "f_1" })));
  finishUpload[1]?.(new Response("<html>", { status: 413 }));
  await vi.waitFor(() => expect(drafts.getFiles("one").map((each) => each.uploaded?.id)).toEqual(["f_1"]));
  drafts.clearFiles("one");
  expect([listNames(drafts, "one"), listNames(drafts, "two")]).toEqual([[], ["c.txt"]]);
});

it("accepts as many files as fit into one message, however they are added", () => {
  const drafts = new ComposerDrafts("p_1");
  for (let number = 0; number < 4; number += 1) drafts.addFiles("one", ["a", "b", "c"].map(createFile));
  expect(drafts.getFiles("one")).toHaveLength(10);
});

it("adds restored files after the files that are already there", () => {
  const drafts = new ComposerDrafts("p_1");
  drafts.addFiles("one", [createFile("a.txt")]);
  drafts.restoreFiles("one", [{ id: "f_2", name: "b.txt", media_type: "text/plain", size: 1 }]);
  expect(listNames(drafts, "one")).toEqual(["a.txt", "b.txt"]);
  expect(drafts.getFiles("one")[1]?.uploaded?.id).toBe("f_2");
});
