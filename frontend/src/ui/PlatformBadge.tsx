/** Where a conversation takes place. */
import { platformName } from "../sidebar/naming";
import { GatewayIcon, PLATFORM_ICONS } from "./icons";

export function PlatformBadge({ platform }: { platform: string }) {
  const name = platformName(platform);
  return (
    <span className="platform" data-platform={platform} title={name} role="img" aria-label={name}>
      <PlatformSign platform={platform} />
    </span>
  );
}

/** The same beside the name, which says it. */
export function PlatformSign({ platform }: { platform: string }) {
  const Icon = PLATFORM_ICONS[platform] ?? GatewayIcon;
  return <Icon />;
}
