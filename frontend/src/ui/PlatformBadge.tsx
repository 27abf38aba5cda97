/** Where a conversation takes place. */
import { platformName } from "../sidebar/naming";
import { GatewayIcon, PLATFORM_ICONS } from "./icons";

export function PlatformBadge({ platform }: { platform: string }) {
  const Icon = PLATFORM_ICONS[platform] ?? GatewayIcon;
  const name = platformName(platform);
  return (
    <span className="platform" data-platform={platform} title={name} role="img" aria-label={name}>
      <Icon />
    </span>
  );
}
