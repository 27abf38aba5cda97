/** The manifest from which Slack creates the app. It is the one of docs/platforms/slack.md, which a test compares. */
export const SLACK_MANIFEST = `display_information:
  name: Palaver
  description: One AI agent, wherever you chat
features:
  app_home:
    home_tab_enabled: false
    messages_tab_enabled: true
    messages_tab_read_only_enabled: false
  bot_user:
    display_name: Palaver
    always_online: true
  slash_commands:
    - command: /palaver
      description: Ask the agent, or run one of its commands
      usage_hint: new | stop | help | your question
      should_escape: true
oauth_config:
  scopes:
    bot:
      - app_mentions:read
      - channels:history
      - channels:read
      - chat:write
      - commands
      - files:read
      - files:write
      - groups:history
      - groups:read
      - im:history
      - im:read
      - mpim:history
      - mpim:read
      - reactions:read
      - reactions:write
      - users:read
settings:
  event_subscriptions:
    bot_events:
      - app_mention
      - app_uninstalled
      - channel_left
      - group_left
      - member_joined_channel
      - member_left_channel
      - message.channels
      - message.groups
      - message.im
      - message.mpim
      - reaction_added
      - reaction_removed
      - tokens_revoked
  interactivity:
    is_enabled: true
  org_deploy_enabled: false
  socket_mode_enabled: true
  token_rotation_enabled: false
`;
