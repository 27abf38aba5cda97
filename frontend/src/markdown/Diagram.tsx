/** A diagram as an image or, if the reader prefers, as its source text. If it cannot be rendered, the source with the reason. */
import { useEffect, useState } from "react";
import { isDarkTheme } from "../layout/theme";
import { useStore } from "../lib/store";
import { CopyButton } from "../ui/CopyButton";
import { Dialog } from "../ui/Dialog";
import { CloseIcon, CodeIcon, EnlargeIcon, PictureIcon } from "../ui/icons";
import { words } from "../words";
import { Code } from "./CodeBlock";
import { getCachedDiagram, MAX_DIAGRAM_CHARS, renderDiagram, type DiagramImage, type DiagramResult } from "./diagramRenderer";
import { DIAGRAM_LANGUAGE } from "./language";
import "./Diagram.css";

const MAX_HEIGHT_PX = 640; // within a message; the dialog shows it larger
const MAX_SCALE = 3; // in the dialog

export default function Diagram({ code }: { code: string }) {
  const result = useDiagram(code);
  const [wantsCode, setWantsCode] = useState(false);
  const [isDialogOpen, setDialogOpen] = useState(false);
  const image = result !== null && "url" in result ? result : null;
  const error = result !== null && "error" in result ? result.error : null;
  const isImageShown = image !== null && !wantsCode;
  const toggleLabel = wantsCode ? words.diagramShowImage : words.diagramShowSource;
  return (
    <figure className="code diagram">
      <figcaption>
        <span>{isImageShown ? words.diagram : DIAGRAM_LANGUAGE}</span>
        {image !== null && (
          <button
            type="button"
            className="icon-button small"
            title={toggleLabel}
            aria-label={toggleLabel}
            onClick={() => setWantsCode(!wantsCode)}
          >
            {wantsCode ? <PictureIcon /> : <CodeIcon />}
          </button>
        )}
        {image !== null && (
          <button
            type="button"
            className="icon-button small"
            title={words.diagramEnlarge}
            aria-label={words.diagramEnlarge}
            onClick={() => setDialogOpen(true)}
          >
            <EnlargeIcon />
          </button>
        )}
        <CopyButton text={code} />
      </figcaption>
      {isImageShown ? (
        <div className="diagram-box">
          <DiagramPicture image={image} scale={Math.min(1, MAX_HEIGHT_PX / image.height)} />
        </div>
      ) : (
        <Code code={code} language={DIAGRAM_LANGUAGE} />
      )}
      {error !== null && <p className="diagram-error">{error}</p>}
      {isDialogOpen && image !== null && <DiagramDialog image={image} onClose={() => setDialogOpen(false)} />}
    </figure>
  );
}

/** The size is set before the browser paints the image, so that nothing moves then. */
function DiagramPicture({ image, scale }: { image: DiagramImage; scale: number }) {
  const { url, width, height, description } = image;
  return (
    <img
      className="diagram-image"
      src={url}
      alt={`${words.diagram}: ${description}`}
      style={{ width: Math.ceil(width * scale), aspectRatio: `${width} / ${height}` }}
    />
  );
}

function DiagramDialog({ image, onClose }: { image: DiagramImage; onClose: () => void }) {
  const windowScale = Math.min((window.innerWidth - 96) / image.width, (window.innerHeight - 160) / image.height);
  return (
    <Dialog label={words.diagram} className="diagram-dialog" onClose={onClose}>
      <div className="diagram-dialog-bar">
        <button type="button" className="icon-button" title={words.close} aria-label={words.close} onClick={onClose}>
          <CloseIcon />
        </button>
      </div>
      <div className="diagram-dialog-image" tabIndex={0}>
        <DiagramPicture image={image} scale={Math.min(MAX_SCALE, Math.max(1, windowScale))} />
      </div>
    </Dialog>
  );
}

/** The rendered diagram; null until then. While it is rendered again, as after a change of theme, the previous image stays. */
function useDiagram(code: string): DiagramResult | null {
  const isDark = useStore(isDarkTheme);
  const isTooLong = code.length > MAX_DIAGRAM_CHARS;
  const [result, setResult] = useState<DiagramResult | null>(() => getCachedDiagram(code, isDark));
  useEffect(() => {
    if (isTooLong) return;
    let isMounted = true;
    const show = (next: DiagramResult) => {
      if (isMounted) setResult(next);
    };
    renderDiagram(code, isDark).then(show, () => show({ error: words.diagramUnreachable }));
    return () => {
      isMounted = false;
    };
  }, [code, isDark, isTooLong]);
  return isTooLong ? { error: words.diagramTooLong } : result;
}
