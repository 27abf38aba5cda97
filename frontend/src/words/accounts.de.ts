/**
 * What the server says about accounts on platforms, in German, by its own text: why one is not connected, how to link it, why a
 * message was not delivered. `{fix}` is a sentence of its own; the first text that fits is used.
 */
export const accountTextsDe: Readonly<Record<string, string>> = {
  // any platform
  "no error was reported": "es wurde kein Fehler gemeldet",
  "not running": "nicht verbunden",
  connecting: "wird verbunden",
  connected: "verbunden",
  "waiting to be linked": "wartet auf Verknüpfung",
  "not responding, connecting again": "antwortet nicht, wird neu verbunden",
  "needs attention": "Aktion erforderlich",
  "Nothing was heard from the platform for too long.": "Von der Plattform kam zu lange nichts.",
  "The platform did not answer in time.": "Die Plattform hat nicht rechtzeitig geantwortet.",
  "The platform did not answer within {seconds} seconds.": "Die Plattform hat nicht innerhalb von {seconds} Sekunden geantwortet.",
  "The connection has ended.": "Die Verbindung ist beendet.",
  "Unexpected error ({error}). The log of the server has the details.": "Unerwarteter Fehler ({error}). Das Protokoll des Servers hat die Einzelheiten.",

  // Telegram
  "The privacy mode of the bot is on: in groups it sees only commands and replies to it, unless it is an administrator. To let it see mentions and other messages, send /setprivacy to @BotFather, choose the bot and then Disable. Then remove the bot from each group and add it again.":
    "Der Privatsphäre-Modus des Bots ist an: In Gruppen sieht er nur Befehle und Antworten an ihn, außer er ist Administrator. Damit er Erwähnungen und andere Nachrichten sieht, sende /setprivacy an @BotFather, wähle den Bot und dann Disable. Entferne den Bot dann aus jeder Gruppe und füge ihn wieder hinzu.",
  "The mode webhook needs an address that Telegram can reach: set web.public_url in the server settings, or use the mode polling.":
    "Für den Webhook braucht es eine Adresse, die Telegram erreichen kann: Setze in den Servereinstellungen die öffentliche Adresse (web.public_url), oder wähle Abfragen.",
  "The bot can't be added to groups. To allow it, send /setjoingroups to @BotFather, choose the bot and then Enable.":
    "Der Bot kann keinen Gruppen hinzugefügt werden. Um es zu erlauben, sende /setjoingroups an @BotFather, wähle den Bot und dann Enable.",
  "Telegram refuses the bot token: it was revoked, or it is not complete. Send /mybots to @BotFather, choose your bot and then API Token, and set it as bot_token in the server settings or as TELEGRAM_BOT_TOKEN.":
    "Telegram lehnt das Bot-Token ab: Es wurde widerrufen oder ist unvollständig. Sende /mybots an @BotFather, wähle deinen Bot und dann API Token und setze es hier oder als TELEGRAM_BOT_TOKEN.",
  "Another program receives the messages of this bot with the same token. Stop the other one, or create a second bot with @BotFather for it. If there is none, revoke the token there (/revoke) and set the new one.":
    "Ein anderes Programm empfängt die Nachrichten dieses Bots mit demselben Token. Beende es, oder lege dafür bei @BotFather einen zweiten Bot an. Wenn es keines gibt, widerrufe das Token dort (/revoke) und setze das neue.",
  "Telegram sends the messages of this bot to a webhook of another program. If that program is no longer used, open https://api.telegram.org/bot<token>/deleteWebhook with your token in a browser, and start again.":
    "Telegram sendet die Nachrichten dieses Bots an den Webhook eines anderen Programms. Wenn es nicht mehr gebraucht wird, öffne https://api.telegram.org/bot<token>/deleteWebhook mit deinem Token im Browser und verbinde erneut.",
  "Telegram sends the messages of this bot to another program, at {host}. If it is no longer used, open https://api.telegram.org/bot<token>/deleteWebhook with your token in a browser. Otherwise create a second bot with @BotFather.":
    "Telegram sendet die Nachrichten dieses Bots an ein anderes Programm, an {host}. Wenn es nicht mehr gebraucht wird, öffne https://api.telegram.org/bot<token>/deleteWebhook mit deinem Token im Browser. Lege sonst bei @BotFather einen zweiten Bot an.",
  "Another program has changed the webhook of this bot.": "Ein anderes Programm hat den Webhook dieses Bots geändert.",
  "Telegram no longer has this file.": "Telegram hat diese Datei nicht mehr.",
  "The person has blocked the bot on Telegram.": "Die Person hat den Bot in Telegram blockiert.",
  "The person has deleted their Telegram account.": "Die Person hat ihr Telegram-Konto gelöscht.",
  "The bot was removed from this chat.": "Der Bot wurde aus diesem Chat entfernt.",
  "The bot is not in this chat.": "Der Bot ist nicht in diesem Chat.",
  "The person has to write to the bot first.": "Die Person muss dem Bot zuerst schreiben.",
  "Bots on Telegram cannot write to each other.": "Bots in Telegram können einander nicht schreiben.",
  "Telegram does not know this chat, or the bot was never in it.": "Telegram kennt diesen Chat nicht, oder der Bot war nie darin.",
  "The bot may not write in this chat. Let an administrator allow it.": "Der Bot darf in diesem Chat nicht schreiben. Ein Administrator muss es erlauben.",
  "The bot may not do this here. Let an administrator allow it.": "Der Bot darf das hier nicht. Ein Administrator muss es erlauben.",
  "The bot has to be an administrator of this channel to write there.": "Der Bot muss Administrator dieses Kanals sein, um dort zu schreiben.",

  // Discord
  "In servers the bot reads only messages that mention it, and not what was written before: the Message Content Intent is off. To turn it on, open https://discord.com/developers/applications, choose your application, then Bot, and turn on Message Content Intent under Privileged Gateway Intents. Press Save Changes, and test the connection again: then it has an effect.":
    "Auf Servern liest der Bot nur Nachrichten, die ihn erwähnen, und nicht, was davor geschrieben wurde: „Message Content Intent“ ist aus. Um es einzuschalten, öffne https://discord.com/developers/applications, wähle deine Anwendung, dann Bot, und schalte unter Privileged Gateway Intents „Message Content Intent“ ein. Klicke auf Save Changes und teste die Verbindung erneut: Dann wirkt es.",
  "Slash commands and buttons don't work: Discord sends them to another program. Open https://discord.com/developers/applications, choose your application, then General Information, and empty Interactions Endpoint URL.":
    "Befehle und Schaltflächen funktionieren nicht: Discord sendet sie an ein anderes Programm. Öffne https://discord.com/developers/applications, wähle deine Anwendung, dann General Information, und leere „Interactions Endpoint URL“.",
  "Discord refuses the bot token. It was reset, or it is not complete. Open https://discord.com/developers/applications, choose your application, then Bot, press Reset Token, and set the new one as bot_token in the server settings or as DISCORD_BOT_TOKEN.":
    "Discord lehnt das Bot-Token ab. Es wurde zurückgesetzt oder ist unvollständig. Öffne https://discord.com/developers/applications, wähle deine Anwendung, dann Bot, klicke auf Reset Token und setze das neue hier oder als DISCORD_BOT_TOKEN.",
  "Discord does not let this bot read messages. Open https://discord.com/developers/applications, choose your application, then Bot, turn on Message Content Intent under Privileged Gateway Intents, press Save Changes, and connect again.":
    "Discord lässt diesen Bot keine Nachrichten lesen. Öffne https://discord.com/developers/applications, wähle deine Anwendung, dann Bot, schalte unter Privileged Gateway Intents „Message Content Intent“ ein, klicke auf Save Changes und verbinde erneut.",
  "Discord wants this bot to use several connections, because it is in too many servers. Palaver has one connection for each bot: create a second application for some of the servers.":
    "Discord verlangt für diesen Bot mehrere Verbindungen, weil er auf zu vielen Servern ist. Palaver hat eine Verbindung je Bot: Lege für einen Teil der Server eine zweite Anwendung an.",
  "The bot is in no server yet, and people can only write to it if they share one with it. Open this link in a browser, choose a server, and press Authorize: {link}":
    "Der Bot ist noch auf keinem Server, und Personen können ihm nur schreiben, wenn sie einen mit ihm teilen. Öffne diesen Link im Browser, wähle einen Server und klicke auf Autorisieren: {link}",
  'In the server "{server}" the bot lacks: {permissions}. Let an administrator open Server Settings, then Roles, choose the role of the bot, and turn these on under Permissions.':
    "Auf dem Server „{server}“ fehlt dem Bot: {permissions}. Ein Administrator öffnet die Servereinstellungen, dann Rollen, wählt die Rolle des Bots und schaltet dies unter Berechtigungen ein.",
  "It lacks permissions in {count} more servers.": "Auf {count} weiteren Servern fehlen Berechtigungen.",
  "In 1 server": "Auf 1 Server",
  "In {count} servers": "Auf {count} Servern",
  "Add it to a server: {link}": "Einem Server hinzufügen: {link}",
  "Discord has closed the connection (code {code}).": "Discord hat die Verbindung beendet (Code {code}).",
  "Discord ends the connection again and again.": "Discord beendet die Verbindung immer wieder.",
  "Discord lets this bot connect again in {minutes} minutes: it did so too often.": "Discord lässt diesen Bot erst in {minutes} Minuten wieder verbinden: Er tat es zu oft.",
  "This channel was deleted, or Discord does not know it.": "Dieser Kanal wurde gelöscht, oder Discord kennt ihn nicht.",
  "The server was deleted, or the bot is no longer in it.": "Der Server wurde gelöscht, oder der Bot ist nicht mehr darin.",
  "The bot can't see this channel. Give its role the permission View Channel there.": "Der Bot sieht diesen Kanal nicht. Gib seiner Rolle dort die Berechtigung „Kanal anzeigen“.",
  "Discord does not let the bot write to this person: they don't accept direct messages, or blocked the bot.": "Discord lässt den Bot dieser Person nicht schreiben: Sie nimmt keine Direktnachrichten an oder hat den Bot blockiert.",
  "Messages can't be sent in a channel of this type.": "In einen Kanal dieser Art können keine Nachrichten gesendet werden.",
  "The bot may not write here. Give its role the permission Send Messages, and Send Messages in Threads.": "Der Bot darf hier nicht schreiben. Gib seiner Rolle die Berechtigungen „Nachrichten senden“ und „Nachrichten in Threads senden“.",
  "Discord does not let the bot write to this person: they share no server with it.": "Discord lässt den Bot dieser Person nicht schreiben: Sie teilt keinen Server mit ihm.",

  // Slack
  "The mode http needs an address that Slack can reach: set web.public_url in the server settings, or use the mode socket.":
    "Für den Empfang über HTTP braucht es eine Adresse, die Slack erreichen kann: Setze in den Servereinstellungen die öffentliche Adresse (web.public_url), oder wähle Socket.",
  "Slack refuses the app token. It is wrong or was revoked, or it belongs to another app. Open https://api.slack.com/apps, choose your app and then Basic Information, create a token with the scope connections:write under App-Level Tokens, and set it as app_token in the server settings or as SLACK_APP_TOKEN.":
    "Slack lehnt das App-Token ab. Es ist falsch, wurde widerrufen oder gehört zu einer anderen App. Öffne https://api.slack.com/apps, wähle deine App und dann Basic Information, erzeuge unter App-Level Tokens ein Token mit dem Scope connections:write und setze es hier oder als SLACK_APP_TOKEN.",
  "The app token lacks the scope connections:write. Open https://api.slack.com/apps, choose your app and then Basic Information, create a new token with this scope under App-Level Tokens, and set it as app_token in the server settings or as SLACK_APP_TOKEN.":
    "Dem App-Token fehlt der Scope connections:write. Öffne https://api.slack.com/apps, wähle deine App und dann Basic Information, erzeuge unter App-Level Tokens ein neues Token mit diesem Scope und setze es hier oder als SLACK_APP_TOKEN.",
  "Slack refuses the bot token. It is wrong or was revoked, or the app was removed from the workspace. Open https://api.slack.com/apps, choose your app and then OAuth & Permissions, copy the Bot User OAuth Token (if there is none, click Install to Workspace first), and set it as bot_token in the server settings or as SLACK_BOT_TOKEN.":
    "Slack lehnt das Bot-Token ab. Es ist falsch, wurde widerrufen, oder die App wurde aus dem Workspace entfernt. Öffne https://api.slack.com/apps, wähle deine App und dann OAuth & Permissions, kopiere das Bot User OAuth Token (wenn es keines gibt, klicke zuerst auf Install to Workspace) und setze es hier oder als SLACK_BOT_TOKEN.",
  "Socket Mode is off for this app. Open https://api.slack.com/apps, choose your app and then Socket Mode, and turn on Enable Socket Mode.":
    "Socket Mode ist für diese App aus. Öffne https://api.slack.com/apps, wähle deine App und dann Socket Mode, und schalte „Enable Socket Mode“ ein.",
  "Open https://api.slack.com/apps, choose your app and then OAuth & Permissions, add the scope under Bot Token Scopes, and click Reinstall to Workspace.":
    "Öffne https://api.slack.com/apps, wähle deine App und dann OAuth & Permissions, füge den Scope unter Bot Token Scopes hinzu und klicke auf Reinstall to Workspace.",
  "The app lacks the scope {scopes}. Open https://api.slack.com/apps, choose your app and then OAuth & Permissions, add what is missing under Bot Token Scopes, and click Reinstall to Workspace.":
    "Der App fehlt der Scope {scopes}. Öffne https://api.slack.com/apps, wähle deine App und dann OAuth & Permissions, füge den fehlenden unter Bot Token Scopes hinzu und klicke auf Reinstall to Workspace.",
  "The app lacks the scopes {scopes}. Open https://api.slack.com/apps, choose your app and then OAuth & Permissions, add what is missing under Bot Token Scopes, and click Reinstall to Workspace.":
    "Der App fehlen die Scopes {scopes}. Öffne https://api.slack.com/apps, wähle deine App und dann OAuth & Permissions, füge die fehlenden unter Bot Token Scopes hinzu und klicke auf Reinstall to Workspace.",
  "The app lacks the scope {scope}. {fix}": "Der App fehlt der Scope {scope}. {fix}",
  "Workspace: {name}": "Workspace: {name}",
  "Request URL: {url}": "Request-URL: {url}",
  "Slack did not greet the new connection.": "Slack hat die neue Verbindung nicht begrüßt.",
  "Slack has closed the connection.": "Slack hat die Verbindung beendet.",
  "Slack ended the new connection at once: {reason}.": "Slack hat die neue Verbindung sofort beendet: {reason}.",
  "Slack does not answer at its socket ({error}).": "Slack antwortet nicht an seinem Socket ({error}).",
  "Slack has refused to connect: {reason}.": "Slack hat die Verbindung abgelehnt: {reason}.",
  "The connection to Slack has ended.": "Die Verbindung zu Slack ist beendet.",
  "Slack does not know this channel, or the app is not in it. Invite it with /invite.": "Slack kennt diesen Kanal nicht, oder die App ist nicht darin. Lade sie mit /invite ein.",
  "The app is not in this channel. Invite it with /invite.": "Die App ist nicht in diesem Kanal. Lade sie mit /invite ein.",
  "Slack does not know this person.": "Slack kennt diese Person nicht.",
  "Apps on Slack cannot write to each other.": "Apps in Slack können einander nicht schreiben.",
  "People can't write to the app. Open https://api.slack.com/apps, choose your app and then App Home, and turn on Messages Tab.":
    "Personen können der App nicht schreiben. Öffne https://api.slack.com/apps, wähle deine App und dann App Home, und schalte „Messages Tab“ ein.",
  "The app may not write in this channel. Ask an administrator of the workspace to allow it.": "Die App darf in diesem Kanal nicht schreiben. Bitte einen Administrator des Workspace, es zu erlauben.",
  "The channel is read-only for the app.": "Der Kanal ist für die App schreibgeschützt.",
  "The channel has no threads.": "Der Kanal hat keine Threads.",
  "The app has no access to this workspace.": "Die App hat keinen Zugang zu diesem Workspace.",

  // Matrix
  "Our session is not verified, so some clients don't send us the keys of encrypted messages. Sign in to the account in Element, open Settings > Sessions, and verify the session {device}.":
    "Unsere Sitzung ist nicht bestätigt, daher senden manche Programme die Schlüssel verschlüsselter Nachrichten nicht. Melde dich mit dem Konto in Element an, öffne Einstellungen > Sitzungen und bestätige die Sitzung {device}.",
  "The homeserver did not let us sign our own session: {reason}": "Der Homeserver ließ uns die eigene Sitzung nicht bestätigen: {reason}",
  "The homeserver does not accept the access token. Sign in with the account again, and set the new token as access_token or MATRIX_ACCESS_TOKEN. It said: {reason}":
    "Der Homeserver lehnt das Zugriffstoken ab. Melde dich mit dem Konto neu an und setze das neue Token hier oder als MATRIX_ACCESS_TOKEN. Er meldet: {reason}",
  "The homeserver does not accept the password of {user}. Check user_id and password (or MATRIX_USER_ID and MATRIX_PASSWORD). It said: {reason}":
    "Der Homeserver lehnt das Passwort von {user} ab. Prüfe Benutzerkennung und Passwort (oder MATRIX_USER_ID und MATRIX_PASSWORD). Er meldet: {reason}",
  "The access token belongs to {owner}, but user_id is {user}. Correct one of the two.": "Das Zugriffstoken gehört zu {owner}, aber die Benutzerkennung ist {user}. Korrigiere eines von beiden.",
  "Encryption is on, but its packages are not installed. Run: pip install 'palaver[matrix-encryption]', or set encryption to false.":
    "Die Verschlüsselung ist an, aber ihre Pakete sind nicht installiert. Führe aus: pip install 'palaver[matrix-encryption]', oder schalte die Verschlüsselung aus.",
  "Encryption is on, but the access token belongs to no device. Use a token from signing in.": "Die Verschlüsselung ist an, aber das Zugriffstoken gehört zu keinem Gerät. Nimm ein Token aus einer Anmeldung.",
  "The access token has ended. Signing in again.": "Das Zugriffstoken ist abgelaufen. Es wird neu angemeldet.",
  "The homeserver can't be reached: {reason}": "Der Homeserver ist nicht erreichbar: {reason}",
  "The homeserver has a problem: {reason}": "Der Homeserver hat ein Problem: {reason}",
  "The connection to the homeserver broke: {reason}": "Die Verbindung zum Homeserver ist abgebrochen: {reason}",
  "The homeserver does not know this room or message: {reason}": "Der Homeserver kennt diesen Raum oder diese Nachricht nicht: {reason}",
  "The homeserver rejected the message: {reason}": "Der Homeserver hat die Nachricht abgelehnt: {reason}",
  "We are not in this room: {reason}": "Das Konto ist nicht in diesem Raum: {reason}",
  "The message could not be encrypted: {reason}": "Die Nachricht konnte nicht verschlüsselt werden: {reason}",

  // webhook
  "Answers are sent without encryption. Use an address with https:// as url.": "Antworten werden unverschlüsselt gesendet. Nimm eine Adresse mit https://.",
  "{host} can't be reached ({error}).": "{host} ist nicht erreichbar ({error}).",
  "{host} did not answer ({error}).": "{host} hat nicht geantwortet ({error}).",
  "{host} has answered with status {status}. It takes no more answers for this conversation.": "{host} hat mit Status {status} geantwortet. Es nimmt für diesen Chat keine Antworten mehr an.",
  "{host} has answered with status {status}. Redirects are not followed: set the final address as url.": "{host} hat mit Status {status} geantwortet. Weiterleitungen wird nicht gefolgt: Setze die endgültige Adresse.",
  "{host} has answered with status {status}.": "{host} hat mit Status {status} geantwortet.",
};
