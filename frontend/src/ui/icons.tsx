/** The icons of the page. Screen readers skip them; the button around an icon has the label. */
import type { ReactNode } from "react";

function createIcon(...paths: string[]) {
  return function Icon(): ReactNode {
    return (
      <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
        {paths.map((path) => (
          <path key={path} d={path} />
        ))}
      </svg>
    );
  };
}

export const ArchiveIcon = createIcon("M4 5h16v4H4z", "M5.5 9v10h13V9", "M10 13h4");
export const ArrowDownIcon = createIcon("M12 5v14", "M6 13l6 6 6-6");
export const ArrowUpIcon = createIcon("M12 19V5", "M6 11l6-6 6 6");
export const BookmarkIcon = createIcon("M7 4h10v16l-5-4-5 4z");
export const SlidersIcon = createIcon("M4 7h9", "M17 7h3", "M15 5v4", "M4 17h3", "M11 17h9", "M9 15v4");
export const BranchIcon = createIcon("M7 4v16", "M7 13c0-3 10-1 10-6", "M17 4v3", "M5 4h4", "M15 4h4", "M5 20h4");
export const ChartIcon = createIcon("M4 20h16", "M7 16v-4", "M12 16V6", "M17 16v-7");
export const CheckIcon = createIcon("M5 12.5l4.5 4.5L19 7.5");
export const ChevronIcon = createIcon("M9 6l6 6-6 6");
export const ChevronDownIcon = createIcon("M6 9l6 6 6-6");
export const CloseIcon = createIcon("M6 6l12 12", "M18 6L6 18");
export const ClockIcon = createIcon("M12 20.5a8.5 8.5 0 1 0 0-17 8.5 8.5 0 0 0 0 17z", "M12 7v5.2l3.4 2.3");
export const CodeIcon = createIcon("M8 7l-5 5 5 5", "M16 7l5 5-5 5");
export const CopyIcon = createIcon("M9 9h11v11H9z", "M15 9V4H4v11h5");
export const DotsIcon = createIcon("M5.5 12a.5.5 0 1 0 1 0 .5.5 0 0 0-1 0", "M11.5 12a.5.5 0 1 0 1 0 .5.5 0 0 0-1 0", "M17.5 12a.5.5 0 1 0 1 0 .5.5 0 0 0-1 0");
export const DoubleBubbleIcon = createIcon("M3.5 4h11v8h-6l-3 3v-3h-2z", "M17.5 9h3v8h-2v3l-3-3h-5v-2");
export const DownloadIcon = createIcon("M12 4v11", "M7 11l5 5 5-5", "M5 20h14");
export const EditIcon = createIcon("M4 20l1-4L16 5l3 3L8 19z", "M14 7l3 3");
export const EnlargeIcon = createIcon("M14 4h6v6", "M20 4l-7 7", "M10 20H4v-6", "M4 20l7-7");
export const HealthIcon = createIcon("M3 12h4l3-7 4 14 3-7h4");
export const FileIcon = createIcon("M6 3h8l4 4v14H6z", "M14 3v4h4");
export const FolderIcon = createIcon("M3.5 6h6l2 2.5h9V19h-17z");
export const GatewayIcon = createIcon("M4 6h16v10h-9l-4 4v-4H4z");
export const LinkIcon = createIcon("M10 14a4 4 0 0 0 5.7 0l3-3A4 4 0 0 0 13 5.3l-1 1", "M14 10a4 4 0 0 0-5.7 0l-3 3A4 4 0 0 0 11 18.7l1-1");
export const MemoryIcon = createIcon("M7 4h10v16l-5-4.5L7 20z");
export const LogIcon = createIcon("M4 6h16", "M4 10h10", "M4 14h14", "M4 18h8");
export const MicrophoneIcon = createIcon("M12 4a2.5 2.5 0 0 1 2.5 2.5v5a2.5 2.5 0 0 1-5 0v-5A2.5 2.5 0 0 1 12 4z", "M6 11.5a6 6 0 0 0 12 0", "M12 17.5V21");
export const SendVoiceIcon = createIcon("M12 20V5", "M6 11l6-6 6 6");
export const SpeakerIcon = createIcon("M4 9.5v5h3.5L12 18V6L7.5 9.5z", "M15.5 9a4 4 0 0 1 0 6", "M18 6.5a8 8 0 0 1 0 11");
export const MenuIcon = createIcon("M4 6.5h16", "M4 12h16", "M4 17.5h16");
export const PaperclipIcon = createIcon("M19 11l-7.5 7.5a4.6 4.6 0 0 1-6.5-6.5L13 4a3 3 0 0 1 4.3 4.3L9.5 16a1.5 1.5 0 0 1-2.1-2.1L14 7.3");
export const PeopleIcon = createIcon("M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7z", "M3 20c0-3.5 2.5-6 6-6s6 2.5 6 6", "M16 4.5a3.5 3.5 0 0 1 0 6", "M17.5 14.5c2.2.8 3.5 2.9 3.5 5.5");
export const PauseIcon = createIcon("M9 6v12", "M15 6v12");
export const PictureIcon = createIcon("M4 5h16v14H4z", "M4 16l5-5 4 4 2-2 5 5", "M15.5 9h.01");
export const PinIcon = createIcon("M9 4h6l-1 6 3 3H7l3-3z", "M12 13v7");
export const PlayIcon = createIcon("M8 5.5l10.5 6.5L8 18.5z");
export const PlusIcon = createIcon("M12 5v14", "M5 12h14");
export const PlatformsIcon = createIcon("M4 5h7v6H4z", "M13 5h7v6h-7z", "M4 13h7v6H4z", "M13 16h7", "M16.5 12.5v7");
export const RedoIcon = createIcon("M20 9H10a5 5 0 0 0 0 10h6", "M16 5l4 4-4 4");
export const RetryIcon = createIcon("M19.5 12a7.5 7.5 0 1 1-2.2-5.3L20 9.4", "M20 4.5v5h-5");
export const SearchIcon = createIcon("M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13z", "M15.5 15.5L20.5 20.5");
export const SelectIcon = createIcon("M4 5h16v14H4z", "M8 12l3 3 5-6");
export const SettingsIcon = createIcon("M4 7h9", "M17 7h3", "M15 5v4", "M4 12h3", "M11 12h9", "M9 10v4", "M4 17h7", "M15 17h5", "M13 15v4");
export const SparkIcon = createIcon("M12 3.5l1.8 5 5 1.8-5 1.8-1.8 5-1.8-5-5-1.8 5-1.8z", "M18.5 16.5v4", "M16.5 18.5h4");
export const StopIcon = createIcon("M7 7h10v10H7z");
export const TemporaryIcon = createIcon("M6 20v-9a6 6 0 0 1 12 0v9l-2-1.8-2 1.8-2-1.8-2 1.8-2-1.8z", "M9.5 11h.01", "M14.5 11h.01");
export const ToolIcon = createIcon("M14.5 6a4 4 0 0 1 5 5L11 19.5a2 2 0 0 1-3-3L16 8", "M14.5 6l2 2");
export const TrashIcon = createIcon("M4.5 7h15", "M9.5 7V4.5h5V7", "M6.5 7l1 13h9l1-13", "M10.5 11v5.5", "M13.5 11v5.5");
export const UndoIcon = createIcon("M4 9h10a5 5 0 0 1 0 10H8", "M8 5L4 9l4 4");
export const UserIcon = createIcon("M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8z", "M4.5 20.5c0-4 3.3-6.5 7.5-6.5s7.5 2.5 7.5 6.5");
export const WalletIcon = createIcon("M4 7.5h14.5a1.5 1.5 0 0 1 1.5 1.5v9.5H5.5A1.5 1.5 0 0 1 4 17z", "M4 7.5V6.5A2 2 0 0 1 6 4.5h11v3", "M16 13h.01");
export const WarningIcon = createIcon("M12 4l9 16H3z", "M12 10v5", "M12 17.5h.01");

export const PLATFORM_ICONS: Record<string, () => ReactNode> = {
  telegram: createIcon("M20.5 4.5L3.5 11.5l5 2 2 6 3-4 5 3.5z", "M8.5 13.5l7-5"),
  discord: createIcon("M7 6c3-1.3 7-1.3 10 0l2.5 10c-1.3 1.2-2.7 2-4.3 2.5l-1-2h-4.4l-1 2C7.2 18 5.8 17.2 4.5 16z", "M9.5 12h.01", "M14.5 12h.01"),
  slack: createIcon("M9.5 4v11", "M14.5 9v11", "M4 14.5h11", "M9 9.5h11"),
  whatsapp: createIcon("M4 20l1.3-4A8 8 0 1 1 8 18.8z", "M9 9c.3 3 3 5.7 6 6l1-2-2-1-1 1-2-2 1-1-1-2z"),
  signal: createIcon("M12 4a8 8 0 1 1-4 15l-4 1 1-4a8 8 0 0 1 7-12z"),
  matrix: createIcon("M7 4H4v16h3", "M17 4h3v16h-3", "M8.5 15v-5", "M12 15v-4c0-1.3-3.5-1.3-3.5 0", "M15.5 15v-4c0-1.3-3.5-1.3-3.5 0"),
  local: createIcon("M4 5h16v14H4z", "M7.5 9.5l3 2.5-3 2.5", "M12.5 15h4"),
  web: createIcon("M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16z", "M4 12h16", "M12 4c3.5 4 3.5 12 0 16-3.5-4-3.5-12 0-16z"),
  api: createIcon("M8 7l-5 5 5 5", "M16 7l5 5-5 5", "M13.5 5l-3 14"),
  webhook: createIcon("M12 8a3 3 0 1 0-2.5-1.3L7 12", "M7 12a3 3 0 1 0 2.5 4.5h5", "M12 8l2.6 4.3A3 3 0 1 1 14 17"),
  cron: createIcon("M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16z", "M12 8v4l3 2"),
};
