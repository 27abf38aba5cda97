import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Unfinished } from "./unfinished";

let finish: ((response: Response) => void)[];

beforeEach(() => {
  localStorage.clear();
  finish = [];
  vi.stubGlobal("fetch", () => new Promise<Response>((resolve) => finish.push(resolve)));
});

afterEach(() => vi.unstubAllGlobals());

const file = (name: string) => new File(["x"], name);
const names = (unfinished: Unfinished, place: string) => unfinished.added(place).map((each) => each.name);

it("keeps texts until they are sent, and shows nobody those of somebody else", () => {
  new Unfinished("p_1").keepText("new", "half a thought");
  expect(new Unfinished("p_1").text("new")).toBe("half a thought");
  expect(new Unfinished("p_2").text("new")).toBe("");
  new Unfinished("p_1").keepText("new", "");
  expect(localStorage.length).toBe(0);
});

it("keeps files with the conversation they were added to, also those on their way", async () => {
  const unfinished = new Unfinished("p_1");
  unfinished.add("one", [file("a.txt"), file("b.txt")]);
  unfinished.add("two", [file("c.txt")]);
  expect([names(unfinished, "one"), names(unfinished, "two")]).toEqual([["a.txt", "b.txt"], ["c.txt"]]);
  finish[0]?.(new Response(JSON.stringify({ id: "f_1" })));
  finish[1]?.(new Response("<html>", { status: 413 }));
  await vi.waitFor(() => expect(unfinished.added("one").map((each) => each.uploaded?.id)).toEqual(["f_1"]));
  unfinished.clear("one");
  expect([names(unfinished, "one"), names(unfinished, "two")]).toEqual([[], ["c.txt"]]);
});

it("takes as many files as go into one message, however they come", () => {
  const unfinished = new Unfinished("p_1");
  for (let number = 0; number < 4; number += 1) unfinished.add("one", ["a", "b", "c"].map(file));
  expect(unfinished.added("one")).toHaveLength(10);
});

it("takes back files that were sent before, behind those that are there", () => {
  const unfinished = new Unfinished("p_1");
  unfinished.add("one", [file("a.txt")]);
  unfinished.putBack("one", [{ id: "f_2", name: "b.txt", type: "text/plain", size: 1 }]);
  expect(names(unfinished, "one")).toEqual(["a.txt", "b.txt"]);
  expect(unfinished.added("one")[1]?.uploaded?.id).toBe("f_2");
});
