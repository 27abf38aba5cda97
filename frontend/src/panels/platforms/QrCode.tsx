/** A QR code, drawn from rows of `1` (dark) and `0` (light). It is dark on white in every theme: some apps read no other. */
const MARGIN = 4; // squares of light around the code, as the standard asks for

export function QrCode({ rows, label }: { rows: readonly string[]; label: string }) {
  const size = rows.length + 2 * MARGIN;
  return (
    <svg className="qr-code" role="img" aria-label={label} viewBox={`0 0 ${size} ${size}`} shapeRendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={drawSquares(rows)} fill="#000" />
    </svg>
  );
}

/** Returns a path with one rectangle for each run of dark squares. */
export function drawSquares(rows: readonly string[]): string {
  return rows
    .flatMap((row, y) => [...row.matchAll(/1+/g)].map((run) => `M${run.index + MARGIN} ${y + MARGIN}h${run[0].length}v1h-${run[0].length}z`))
    .join("");
}
