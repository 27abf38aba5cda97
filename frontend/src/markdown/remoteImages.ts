/**
 * Images from other sites. Instead of such an image, a button is shown; the image is loaded when the reader clicks it.
 *
 * Always true: nothing is requested from another site before that click, because the request would tell it who reads the message,
 * and the address could carry a part of the conversation.
 */
import { words } from "../words";
import { escapeHtml } from "./escape";

interface Size {
  width: number;
  height: number;
}

const MAX_REMEMBERED_IMAGES = 200;

/**
 * The images that the reader has loaded, with their size once it is known. They are there again when their message is scrolled
 * away and back. They belong to the page's main element, which is a new one for the next person who signs in.
 */
const loadedImages = new WeakMap<Element, Map<string, Size | null>>();

function getLoadedImages(element: Element): Map<string, Size | null> {
  const page = element.closest("main") ?? document.body;
  const images = loadedImages.get(page) ?? new Map<string, Size | null>();
  loadedImages.set(page, images);
  return images;
}

/** Only HTTPS: the server's policy allows no other images. */
export function isRemoteImage(url: string): boolean {
  return URL.canParse(url) && new URL(url).protocol === "https:";
}

export function renderRemoteImage(url: string, description: string): string {
  const { host } = new URL(url);
  const name = description.trim() === "" ? "" : `<span>${escapeHtml(description)}</span>`;
  return `<button type="button" class="remote-image" data-src="${escapeHtml(url)}" data-description="${escapeHtml(description)}"><b>${escapeHtml(words.loadImage)}</b>${name}<small>${escapeHtml(host)}</small></button>`;
}

/** Shows the images again that the reader has loaded before. */
export function restoreRemoteImages(root: HTMLElement): void {
  const images = getLoadedImages(root);
  for (const button of root.querySelectorAll<HTMLButtonElement>(".remote-image")) {
    if (images.has(button.dataset.src ?? "")) showImage(button, images);
  }
}

/** Loads the image of the button that was clicked, if one was. */
export function loadClickedImage(target: Element): void {
  const button = target.closest<HTMLButtonElement>(".remote-image");
  if (button === null) return;
  const images = getLoadedImages(button);
  const [oldest] = images.keys();
  if (images.size === MAX_REMEMBERED_IMAGES && oldest !== undefined) images.delete(oldest);
  images.set(button.dataset.src ?? "", null);
  showImage(button, images).focus();
}

function showImage(button: HTMLButtonElement, images: Map<string, Size | null>): HTMLElement {
  const { src = "", description = "" } = button.dataset;
  const link = document.createElement("a");
  link.href = src;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  const image = document.createElement("img");
  const size = images.get(src);
  if (size != null) Object.assign(image, size);
  image.alt = description.trim() === "" ? words.image : description;
  image.referrerPolicy = "no-referrer";
  image.addEventListener("load", () => {
    if (images.has(src)) images.set(src, { width: image.naturalWidth, height: image.naturalHeight });
  });
  image.addEventListener("error", () => {
    images.delete(src);
    link.replaceChildren(`${words.imageFailed}: ${image.alt}`);
  });
  image.src = src;
  link.append(image);
  button.replaceWith(link);
  return link;
}
