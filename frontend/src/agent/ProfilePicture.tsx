/** The picture of a profile, beside its name. */
import "./agent.css";

export function ProfilePicture({ url }: { url: string }) {
  return <img className="profile-picture" src={url} alt="" width={20} height={20} />;
}
