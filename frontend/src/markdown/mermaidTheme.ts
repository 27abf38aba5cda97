/** The page's current colors and font as a Mermaid theme. `tokens.css` defines them for both themes. */

const COLOR_NAMES = ["accent", "code-title", "code-number", "code-type", "code-keyword", "code-string", "warning", "danger"];
const AREA_OPACITY = 0.32; // of a color that fills an area with text on it
const AXIS = ["LabelColor", "TitleColor", "TickColor", "LineColor"];
const CHART_TEXT_COLORS = ["titleColor", "dataLabelColor", "legendTextColor", ...AXIS.map((part) => `xAxis${part}`), ...AXIS.map((part) => `yAxis${part}`)];

export function readMermaidTheme(isDark: boolean): object {
  const probe = document.createElement("i");
  document.body.append(probe);
  const readChannels = (name: string) => {
    probe.style.color = `var(--${name})`;
    return (getComputedStyle(probe).color.match(/\d+/g) ?? []).slice(0, 3).map(Number);
  };
  const readColor = (name: string) => toHex(readChannels(name));
  const mixWithBackground = (name: string) => {
    const background = readChannels("surface");
    return toHex(readChannels(name).map((channel, index) => channel * AREA_OPACITY + (background[index] ?? 0) * (1 - AREA_OPACITY)));
  };
  const { fontFamily } = getComputedStyle(probe);
  const textColor = readColor("text-color");
  const areas = COLOR_NAMES.map(mixWithBackground);
  const theme = {
    fontFamily,
    themeVariables: {
      darkMode: isDark,
      fontFamily,
      fontSize: "15px",
      background: readColor("surface"),
      primaryColor: readColor("accent-soft"),
      primaryTextColor: textColor,
      primaryBorderColor: readColor("accent"),
      secondaryColor: readColor("surface-inset"),
      tertiaryColor: readColor("sidebar-background"),
      lineColor: readColor("text-muted"),
      textColor,
      edgeLabelBackground: readColor("surface"),
      noteBkgColor: readColor("highlight"),
      noteTextColor: textColor,
      noteBorderColor: readColor("warning"),
      pieStrokeColor: readColor("surface"),
      pieOuterStrokeColor: readColor("border"),
      pieOpacity: 1,
      xyChart: {
        backgroundColor: readColor("surface"),
        plotColorPalette: COLOR_NAMES.map(readColor).join(","),
        ...Object.fromEntries(CHART_TEXT_COLORS.map((name) => [name, textColor])),
      },
      ...buildNumberedColors("pie", areas, 1),
      ...buildNumberedColors("cScale", areas),
      ...buildNumberedColors("git", areas),
      ...buildNumberedColors("cScaleLabel", areas.map(() => textColor)),
      ...buildNumberedColors("gitBranchLabel", areas.map(() => textColor)),
    },
  };
  probe.remove();
  return theme;
}

function buildNumberedColors(name: string, colors: readonly string[], from = 0): Record<string, string> {
  return Object.fromEntries(colors.map((color, index) => [`${name}${index + from}`, color]));
}

function toHex(channels: readonly number[]): string {
  return `#${channels.map((channel) => Math.round(channel).toString(16).padStart(2, "0")).join("")}`;
}
