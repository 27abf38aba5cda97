/** A diagram: drawn, or the text that describes it; as one likes, and where it cannot be drawn, with the reason. */
import { useEffect, useState } from "react";
import { useStore } from "../lib/store";
import { darkness } from "../shell/theme";
import { CopyButton } from "../ui/CopyButton";
import { Dialog } from "../ui/Dialog";
import { CloseIcon, CodeIcon, EnlargeIcon, PictureIcon } from "../ui/icons";
import { words } from "../words";
import { Code } from "./CodeBlock";
import { DIAGRAM } from "./diagrams";
import { draw, drawnBefore, LONGEST, type Drawn, type Picture } from "./drawing";

const TALLEST = 640; // pixels of a picture between words; all of it is in the larger view
const LARGEST = 3; // times its own size

const itself = (isDark: boolean) => isDark;

export default function Diagram({ code }: { code: string }) {
  const drawn = useDrawn(code);
  const [wantsCode, setWantsCode] = useState(false);
  const [isLarge, setLarge] = useState(false);
  const picture = drawn !== null && "address" in drawn ? drawn : null;
  const error = drawn !== null && "error" in drawn ? drawn.error : null;
  const isDrawing = picture !== null && !wantsCode;
  const other = wantsCode ? words.diagramShow : words.diagramCode;
  return (
    <figure className="code diagram">
      <figcaption>
        <span>{isDrawing ? words.diagram : DIAGRAM}</span>
        {picture !== null && (
          <button
            type="button"
            className="icon-button small"
            title={other}
            aria-label={other}
            onClick={() => setWantsCode(!wantsCode)}
          >
            {wantsCode ? <PictureIcon /> : <CodeIcon />}
          </button>
        )}
        {picture !== null && (
          <button
            type="button"
            className="icon-button small"
            title={words.diagramLarger}
            aria-label={words.diagramLarger}
            onClick={() => setLarge(true)}
          >
            <EnlargeIcon />
          </button>
        )}
        <CopyButton text={code} />
      </figcaption>
      {isDrawing ? (
        <div className="diagram-picture">
          <Drawing picture={picture} scale={Math.min(1, TALLEST / picture.height)} />
        </div>
      ) : (
        <Code code={code} language={DIAGRAM} />
      )}
      {error !== null && <p className="diagram-error">{error}</p>}
      {isLarge && picture !== null && <Larger picture={picture} onClose={() => setLarge(false)} />}
    </figure>
  );
}

/** A picture whose place is known before it is painted, so that nothing moves when it is. */
function Drawing({ picture, scale }: { picture: Picture; scale: number }) {
  const { address, width, height, says } = picture;
  return (
    <img
      className="drawing"
      src={address}
      alt={`${words.diagram}: ${says}`}
      style={{ width: Math.ceil(width * scale), aspectRatio: `${width} / ${height}` }}
    />
  );
}

function Larger({ picture, onClose }: { picture: Picture; onClose: () => void }) {
  const fitting = Math.min((window.innerWidth - 96) / picture.width, (window.innerHeight - 160) / picture.height);
  return (
    <Dialog label={words.diagram} className="larger" onClose={onClose}>
      <div className="larger-bar">
        <button type="button" className="icon-button" title={words.close} aria-label={words.close} onClick={onClose}>
          <CloseIcon />
        </button>
      </div>
      <div className="larger-picture" tabIndex={0}>
        <Drawing picture={picture} scale={Math.min(LARGEST, Math.max(1, fitting))} />
      </div>
    </Dialog>
  );
}

/** What became of a diagram; null as long as it is being drawn. While it is drawn anew, as it was. */
function useDrawn(code: string): Drawn | null {
  const isDark = useStore(darkness, itself);
  const isTooLong = code.length > LONGEST;
  const [drawn, setDrawn] = useState<Drawn | null>(() => drawnBefore(code, isDark));
  useEffect(() => {
    if (isTooLong) return;
    let isMounted = true;
    const show = (result: Drawn) => {
      if (isMounted) setDrawn(result);
    };
    draw(code, isDark).then(show, () => show({ error: words.diagramUnreachable }));
    return () => {
      isMounted = false;
    };
  }, [code, isDark, isTooLong]);
  return isTooLong ? { error: words.diagramTooLong } : drawn;
}
