/** Chooses a small picture. The browser makes it smaller; it is stored as a data URL. */
import { useRef } from "react";
import { toast } from "../../ui/toasts";
import { setupWords } from "../../words/setup";

const SIZE_PIXELS = 96;

interface Props {
  id: string;
  value: string;
  disabled: boolean;
  "aria-describedby": string;
  onChange: (dataUrl: string | null) => void;
}

export function PictureInput({ id, value, disabled, onChange, ...props }: Props) {
  const picker = useRef<HTMLInputElement>(null);
  const read = async (file: File | undefined) => {
    if (file === undefined) return;
    const url = await shrink(file);
    if (url === null) toast(setupWords.pictureUnreadable);
    else onChange(url);
  };
  return (
    <span className="picture-input">
      {value !== "" && <img src={value} alt="" width={48} height={48} />}
      <input ref={picker} type="file" accept="image/*" hidden onChange={(event) => void read(event.target.files?.[0])} />
      <button id={id} type="button" className="button" disabled={disabled} aria-describedby={props["aria-describedby"]} onClick={() => picker.current?.click()}>
        {setupWords.choosePicture}
      </button>
      {value !== "" && !disabled && (
        <button type="button" className="text-button" onClick={() => onChange(null)}>
          {setupWords.removePicture}
        </button>
      )}
    </span>
  );
}

/** A square of the middle of the picture; null if the browser can't read the file. */
async function shrink(file: File): Promise<string | null> {
  try {
    const picture = await createImageBitmap(file);
    const side = Math.min(picture.width, picture.height);
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = SIZE_PIXELS;
    const [x, y] = [(picture.width - side) / 2, (picture.height - side) / 2];
    canvas.getContext("2d")?.drawImage(picture, x, y, side, side, 0, 0, SIZE_PIXELS, SIZE_PIXELS);
    return canvas.toDataURL("image/png");
  } catch {
    return null;
  }
}
