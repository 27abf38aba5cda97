/** The icon of the platform that a conversation takes place on. */
import { getPlatformName } from "../format/platforms";
import { GatewayIcon, PLATFORM_ICONS } from "./icons";
import "./PlatformBadge.css";

export function PlatformBadge({ platform }: { platform: string }) {
  const name = getPlatformName(platform);
  return (
    <span className="platform" data-platform={platform} title={name} role="img" aria-label={name}>
      <PlatformIcon platform={platform} />
    </span>
  );
}

/** The icon alone, for places that also show the name of the platform. */
export function PlatformIcon({ platform }: { platform: string }) {
  const Icon = PLATFORM_ICONS[platform] ?? GatewayIcon;
  return <Icon />;
}
