import { expect, it } from "vitest";
import { readPastedFiles } from "./pastedFiles";

const image = new File(["x"], "image.png", { type: "image/png" });
const paste = (...types: string[]) => readPastedFiles({ files: [image] as unknown as FileList, types });

it("accepts pasted images and files", () => {
  expect(paste("Files")).toEqual([image]);
  expect(paste("text/html", "Files")).toEqual([image]); // an image copied from a web page
  expect(paste("text/plain", "Files")).toEqual([image]); // a file and its name
});

it("ignores the image that a word processor or spreadsheet adds to copied text", () => {
  expect(paste("text/plain", "text/html", "text/rtf", "Files")).toEqual([]);
});
