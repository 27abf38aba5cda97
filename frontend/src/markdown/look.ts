/** The page's colours and type in Mermaid's words, as they are now: `tokens.css` has them for both themes. */

const HUES = ["accent", "code-title", "code-number", "code-type", "code-keyword", "code-string", "warm", "danger"];
const SOFT = 0.32; // of a hue, in an area with words on it
const AXIS = ["LabelColor", "TitleColor", "TickColor", "LineColor"];
const CHARTED = ["titleColor", "dataLabelColor", "legendTextColor", ...AXIS.map((part) => `xAxis${part}`), ...AXIS.map((part) => `yAxis${part}`)];

export function pageLook(isDark: boolean): object {
  const probe = document.createElement("i");
  document.body.append(probe);
  const channels = (name: string) => {
    probe.style.color = `var(--${name})`;
    return (getComputedStyle(probe).color.match(/\d+/g) ?? []).slice(0, 3).map(Number);
  };
  const colour = (name: string) => hex(channels(name));
  const soft = (name: string) => {
    const ground = channels("raised");
    return hex(channels(name).map((channel, place) => channel * SOFT + (ground[place] ?? 0) * (1 - SOFT)));
  };
  const { fontFamily } = getComputedStyle(probe);
  const ink = colour("ink");
  const areas = HUES.map(soft);
  const look = {
    fontFamily,
    themeVariables: {
      darkMode: isDark,
      fontFamily,
      fontSize: "15px",
      background: colour("raised"),
      primaryColor: colour("accent-soft"),
      primaryTextColor: ink,
      primaryBorderColor: colour("accent"),
      secondaryColor: colour("sunken"),
      tertiaryColor: colour("side"),
      lineColor: colour("ink-soft"),
      textColor: ink,
      edgeLabelBackground: colour("raised"),
      noteBkgColor: colour("mark"),
      noteTextColor: ink,
      noteBorderColor: colour("warm"),
      pieStrokeColor: colour("raised"),
      pieOuterStrokeColor: colour("line"),
      pieOpacity: 1,
      xyChart: {
        backgroundColor: colour("raised"),
        plotColorPalette: HUES.map(colour).join(","),
        ...Object.fromEntries(CHARTED.map((name) => [name, ink])),
      },
      ...numbered("pie", areas, 1),
      ...numbered("cScale", areas),
      ...numbered("git", areas),
      ...numbered("cScaleLabel", areas.map(() => ink)),
      ...numbered("gitBranchLabel", areas.map(() => ink)),
    },
  };
  probe.remove();
  return look;
}

function numbered(name: string, colours: readonly string[], from = 0): Record<string, string> {
  return Object.fromEntries(colours.map((colour, place) => [`${name}${place + from}`, colour]));
}

function hex(channels: readonly number[]): string {
  return `#${channels.map((channel) => Math.round(channel).toString(16).padStart(2, "0")).join("")}`;
}
