import { expect, it } from "vitest";
import { filesIn } from "./pasted";

const picture = new File(["x"], "picture.png", { type: "image/png" });
const pasted = (...types: string[]) => filesIn({ files: [picture] as unknown as FileList, types });

it("takes pictures and files that are pasted", () => {
  expect(pasted("Files")).toEqual([picture]);
  expect(pasted("text/html", "Files")).toEqual([picture]); // a picture of another page
  expect(pasted("text/plain", "Files")).toEqual([picture]); // a file, and its name
});

it("leaves words to the field that come with a picture of themselves, as from a table", () => {
  expect(pasted("text/plain", "text/html", "text/rtf", "Files")).toEqual([]);
});
