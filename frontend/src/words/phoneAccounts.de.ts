/** What the server says about accounts of WhatsApp, Signal and e-mail, in German, by its own text. See `accounts.de.ts`. */
export const phoneAccountTextsDe: Readonly<Record<string, string>> = {
  // WhatsApp
  "Messages arrive only at an address that Meta can reach: set web.public_url in the server settings to the https:// address of this server, and this check tells you whether Meta uses it.":
    "Nachrichten kommen nur an einer Adresse an, die Meta erreichen kann: Setze in den Servereinstellungen die öffentliche Adresse (web.public_url) auf die https://-Adresse dieses Servers; dann sagt dir diese Prüfung, ob Meta sie verwendet.",
  "No app is subscribed to this WhatsApp Business Account, so no messages arrive. At developers.facebook.com open your app, WhatsApp, Configuration, and subscribe to the webhook field messages.":
    "Keine App hat dieses WhatsApp-Business-Konto abonniert, daher kommen keine Nachrichten an. Öffne unter developers.facebook.com deine App, WhatsApp, Konfiguration, und abonniere das Webhook-Feld messages.",
  "Meta sends the messages of this number to {address}. At developers.facebook.com open your app, WhatsApp, Configuration, and set the callback URL to {url} with your verify_token.":
    "Meta sendet die Nachrichten dieser Nummer an {address}. Öffne unter developers.facebook.com deine App, WhatsApp, Konfiguration, und setze die Callback-URL auf {url} mit deinem Prüf-Token.",
  "Meta has no webhook. At developers.facebook.com open your app, WhatsApp, Configuration, and set the callback URL to {url} with your verify_token.":
    "Meta hat keinen Webhook. Öffne unter developers.facebook.com deine App, WhatsApp, Konfiguration, und setze die Callback-URL auf {url} mit deinem Prüf-Token.",
  "Meta refuses the access token. It has expired, or was revoked. Create a token of a system user that never expires (Meta Business Suite, Settings, System users, Generate token) and put it into access_token.":
    "Meta lehnt das Zugriffstoken ab. Es ist abgelaufen oder wurde widerrufen. Erzeuge ein Token eines Systembenutzers, das nie abläuft (Meta Business Suite, Einstellungen, Systembenutzer, Token generieren), und trage es als Zugriffstoken ein.",
  "The access token lacks a permission. Generate it again with whatsapp_business_messaging and whatsapp_business_management, and give its system user full control of the WhatsApp account.":
    "Dem Zugriffstoken fehlt eine Berechtigung. Erzeuge es neu mit whatsapp_business_messaging und whatsapp_business_management und gib seinem Systembenutzer volle Kontrolle über das WhatsApp-Konto.",
  "Meta knows no number with this phone_number_id, or the access token may not use it. Copy the id from developers.facebook.com: your app, WhatsApp, API Setup. It is not the phone number itself.":
    "Meta kennt keine Nummer mit dieser ID, oder das Zugriffstoken darf sie nicht verwenden. Kopiere die ID aus developers.facebook.com: deine App, WhatsApp, API-Einrichtung. Es ist nicht die Telefonnummer selbst.",
  "WhatsApp lets a business write only within 24 hours after the person's last message. It can be sent after they have written again.":
    "WhatsApp lässt ein Unternehmen nur innerhalb von 24 Stunden nach der letzten Nachricht der Person schreiben. Es kann gesendet werden, wenn sie wieder geschrieben hat.",
  "Meta has blocked this business for a policy violation. Look at Account quality in the Meta Business Suite.": "Meta hat dieses Unternehmen wegen eines Regelverstoßes gesperrt. Sieh in der Meta Business Suite unter Kontoqualität nach.",
  "Meta has locked this business account. Look at Account quality in the Meta Business Suite.": "Meta hat dieses Unternehmenskonto gesperrt. Sieh in der Meta Business Suite unter Kontoqualität nach.",
  "The display name of this number is not approved yet. Look at it in the WhatsApp Manager.": "Der Anzeigename dieser Nummer ist noch nicht genehmigt. Sieh im WhatsApp Manager nach.",
  "WhatsApp sends nothing until the payment method of the business account works. Fix it in the WhatsApp Manager under Billing.": "WhatsApp sendet nichts, bis die Zahlungsart des Unternehmenskontos funktioniert. Korrigiere sie im WhatsApp Manager unter Abrechnung.",
  "This number is not registered for the Cloud API. Register it in the WhatsApp Manager.": "Diese Nummer ist nicht für die Cloud-API registriert. Registriere sie im WhatsApp Manager.",
  "WhatsApp can't deliver to this person: they have no WhatsApp, have blocked this number, or use an old version.": "WhatsApp kann dieser Person nichts zustellen: Sie hat kein WhatsApp, hat diese Nummer blockiert oder nutzt eine alte Version.",
  "This number of Meta is only for tests: add the person's number under API Setup, To, Manage phone number list, or use a number of your own.":
    "Diese Nummer von Meta ist nur für Tests: Füge die Nummer der Person unter API-Einrichtung, An, Telefonnummernliste verwalten hinzu, oder nimm eine eigene Nummer.",
  "Meta does not let this business write to people in this country.": "Meta lässt dieses Unternehmen Personen in diesem Land nicht schreiben.",
  "The person has a new phone. They have to write again before WhatsApp delivers to it.": "Die Person hat ein neues Telefon. Sie muss wieder schreiben, bevor WhatsApp dorthin zustellt.",
  "WhatsApp did not deliver this message, because the person takes part in an experiment of Meta.": "WhatsApp hat diese Nachricht nicht zugestellt, weil die Person an einem Experiment von Meta teilnimmt.",
  "A number can't write to itself.": "Eine Nummer kann nicht an sich selbst schreiben.",
  "WhatsApp did not deliver this message, to limit what businesses send to this person.": "WhatsApp hat diese Nachricht nicht zugestellt, um zu begrenzen, was Unternehmen dieser Person senden.",
  "The person does not want messages of this kind from this business.": "Die Person möchte solche Nachrichten von diesem Unternehmen nicht.",
  "WhatsApp could not open the file.": "WhatsApp konnte die Datei nicht öffnen.",
  "WhatsApp could not take the file. Its type may not be supported.": "WhatsApp konnte die Datei nicht annehmen. Ihr Typ wird vielleicht nicht unterstützt.",
  "WhatsApp needs the person's phone number for this message, and they hide it.": "WhatsApp braucht für diese Nachricht die Telefonnummer der Person, und sie verbirgt sie.",
  "This business has written to as many people as Meta allows it in a day.": "Dieses Unternehmen hat so vielen Personen geschrieben, wie Meta ihm an einem Tag erlaubt.",
  "Meta rates the quality of this number as low. It may limit or block the number.": "Meta bewertet die Qualität dieser Nummer als niedrig. Es kann die Nummer einschränken oder sperren.",
  "Quality rating: {rating}": "Qualitätsbewertung: {rating}",
  "The {subject} could not be checked: {error}": "Konnte nicht geprüft werden ({subject}): {error}",
  "Set business_account_id to have the subscription of the webhook checked.": "Trage die ID des Business-Kontos ein, um das Abonnement des Webhooks prüfen zu lassen.",
  "The access token lacks {permissions}. Generate it again with both permissions.": "Dem Zugriffstoken fehlt {permissions}. Erzeuge es neu mit beiden Berechtigungen.",
  "The access token expires on {day}. Use the token of a system user, which never expires: Meta Business Suite, Settings, System users, Generate token.":
    "Das Zugriffstoken läuft am {day} ab. Nimm das Token eines Systembenutzers, das nie abläuft: Meta Business Suite, Einstellungen, Systembenutzer, Token generieren.",

  // WhatsApp Web
  "This account was not linked with a phone in time. Choose “Connect now” when you have your phone at hand: then a new code is shown.":
    "Dieses Konto wurde nicht rechtzeitig mit einem Telefon verknüpft. Wähle „Jetzt verbinden“, wenn du dein Telefon zur Hand hast: Dann erscheint ein neuer Code.",
  "On your phone, open WhatsApp, then Settings on an iPhone or the menu ⋮ on Android, then Linked devices, then Link a device.":
    "Öffne auf dem Telefon WhatsApp, dann Einstellungen (iPhone) oder das Menü ⋮ (Android), dann Verknüpfte Geräte, dann Gerät hinzufügen.",
  "{notice} On your phone, open WhatsApp, then Settings on an iPhone or the menu ⋮ on Android, then Linked devices, then Link a device. {how}":
    "{notice} Öffne auf dem Telefon WhatsApp, dann Einstellungen (iPhone) oder das Menü ⋮ (Android), dann Verknüpfte Geräte, dann Gerät hinzufügen. {how}",
  "On your phone, open WhatsApp, then Settings on an iPhone or the menu ⋮ on Android, then Linked devices, then Link a device. {how}":
    "Öffne auf dem Telefon WhatsApp, dann Einstellungen (iPhone) oder das Menü ⋮ (Android), dann Verknüpfte Geräte, dann Gerät hinzufügen. {how}",
  "Scan this code.": "Scanne diesen Code.",
  "Choose “Link with phone number instead”, and type this code.": "Wähle „Stattdessen mit Telefonnummer verknüpfen“ und tippe diesen Code ein.",
  "Install it with `pip install 'palaver[whatsapp-web]'`, in the same environment as Palaver, and start the server again.":
    "Installiere es mit `pip install 'palaver[whatsapp-web]'` in derselben Umgebung wie Palaver und starte den Server neu.",
  "WhatsApp Web needs the Python package {module}, which can't be loaded. {fix}": "WhatsApp Web braucht das Python-Paket {module}, das nicht geladen werden kann. {fix}",
  "The WhatsApp library can't be loaded on this machine: {error}": "Die Bibliothek für WhatsApp kann auf diesem Rechner nicht geladen werden: {error}",
  "The WhatsApp library needs libmagic, which is not installed. On Debian and Ubuntu: `sudo apt install libmagic1`; on macOS: `brew install libmagic`. Then choose “Connect now”.":
    "Die Bibliothek für WhatsApp braucht libmagic, das nicht installiert ist. Unter Debian und Ubuntu: `sudo apt install libmagic1`; unter macOS: `brew install libmagic`. Wähle dann „Jetzt verbinden“.",
  "The WhatsApp library did not start in time.": "Die Bibliothek für WhatsApp ist nicht rechtzeitig gestartet.",
  "The process for WhatsApp can't be started: {error}.": "Der Prozess für WhatsApp kann nicht gestartet werden: {error}.",
  "The link was ended on the phone (Linked devices), or the phone was not online for two weeks.": "Die Verknüpfung wurde auf dem Telefon beendet (Verknüpfte Geräte), oder das Telefon war zwei Wochen nicht online.",
  "WhatsApp has locked the account, or it has moved to another phone. Open WhatsApp on the phone to see what it says.":
    "WhatsApp hat das Konto gesperrt, oder es ist auf ein anderes Telefon umgezogen. Öffne WhatsApp auf dem Telefon, um zu sehen, was es meldet.",
  "WhatsApp has ended the link, possibly because it has banned the number. Open WhatsApp on the phone to see what it says.":
    "WhatsApp hat die Verknüpfung beendet, vielleicht weil es die Nummer gesperrt hat. Öffne WhatsApp auf dem Telefon, um zu sehen, was es meldet.",
  "too many messages went to people who do not have this number in their contacts": "zu viele Nachrichten gingen an Personen, die diese Nummer nicht in ihren Kontakten haben",
  "too many people have blocked this number": "zu viele Personen haben diese Nummer blockiert",
  "too many groups were created with people who do not have this number": "zu viele Gruppen wurden mit Personen angelegt, die diese Nummer nicht haben",
  "the same message was sent too often": "dieselbe Nachricht wurde zu oft gesendet",
  "too many messages went to a broadcast list": "zu viele Nachrichten gingen an eine Broadcast-Liste",
  "it behaved like a program": "sie verhielt sich wie ein Programm",
  "Another program uses the keys of this linked device, such as a second Palaver with a copy of this folder. Stop the other one, and then choose “Connect now”. If there is none, remove the device on your phone (WhatsApp, Linked devices) and link it again.":
    "Ein anderes Programm verwendet die Schlüssel dieses verknüpften Geräts, etwa ein zweites Palaver mit einer Kopie dieses Ordners. Beende es und wähle dann „Jetzt verbinden“. Wenn es keines gibt, entferne das Gerät auf dem Telefon (WhatsApp, Verknüpfte Geräte) und verknüpfe es neu.",
  "WhatsApp no longer accepts this version of the library. Install a newer one with `pip install --upgrade neonize`, and start the server again.":
    "WhatsApp akzeptiert diese Version der Bibliothek nicht mehr. Installiere eine neuere mit `pip install --upgrade neonize` und starte den Server neu.",
  "Stop this account for now (platforms.whatsapp-web.enabled: false), and look into WhatsApp on your phone.": "Trenne dieses Konto vorerst und sieh in WhatsApp auf dem Telefon nach.",
  "{reason} Stop this account for now (platforms.whatsapp-web.enabled: false), and look into WhatsApp on your phone.": "{reason} Trenne dieses Konto vorerst und sieh in WhatsApp auf dem Telefon nach.",
  "WhatsApp has banned this number for a while: {reason}.": "WhatsApp hat diese Nummer vorübergehend gesperrt: {reason}.",
  "WhatsApp has banned this number until {until}: {reason}.": "WhatsApp hat diese Nummer bis {until} gesperrt: {reason}.",
  "WhatsApp has banned this number for a while.": "WhatsApp hat diese Nummer vorübergehend gesperrt.",
  "WhatsApp refuses the connection for now ({reason}).": "WhatsApp lehnt die Verbindung vorerst ab ({reason}).",
  "WhatsApp ends every new link. {notice}": "WhatsApp beendet jede neue Verknüpfung. {notice}",
  "WhatsApp is not connected right now. It is being connected again.": "WhatsApp ist gerade nicht verbunden. Es wird neu verbunden.",
  "WhatsApp does not answer right now. If that goes on, it is connected again.": "WhatsApp antwortet gerade nicht. Wenn das anhält, wird es neu verbunden.",
  "The connection to WhatsApp has ended.": "Die Verbindung zu WhatsApp ist beendet.",
  "WhatsApp can't be reached. Check the network connection of this machine ({reason}).": "WhatsApp ist nicht erreichbar. Prüfe die Netzwerkverbindung dieses Rechners ({reason}).",

  // Signal
  "Signal no longer accepts this device: it was removed from the linked devices on the phone, or was not connected for 30 days. To link it again, choose Connect now on the page, or run `palaver platforms link signal`, and scan the new code with the phone.":
    "Signal akzeptiert dieses Gerät nicht mehr: Es wurde auf dem Telefon aus den gekoppelten Geräten entfernt oder war 30 Tage nicht verbunden. Um es neu zu koppeln, wähle „Jetzt verbinden“ oder führe `palaver platforms link signal` aus, und scanne den neuen Code mit dem Telefon.",
  "Signal no longer accepts this number: it was registered on another device, or was deleted. Register it again with `signal-cli register` and `signal-cli verify`, and the same `--config` as the first time.":
    "Signal akzeptiert diese Nummer nicht mehr: Sie wurde auf einem anderen Gerät registriert oder gelöscht. Registriere sie neu mit `signal-cli register` und `signal-cli verify` und demselben `--config` wie beim ersten Mal.",
  "Download the file that ends in `Linux-native.tar.gz` from https://github.com/AsamK/signal-cli/releases, unpack it and set `program` to the path of the file `signal-cli`. It needs no Java. On macOS: `brew install signal-cli`.":
    "Lade die Datei, die auf `Linux-native.tar.gz` endet, von https://github.com/AsamK/signal-cli/releases herunter, entpacke sie und setze `program` auf den Pfad der Datei `signal-cli`. Sie braucht kein Java. Unter macOS: `brew install signal-cli`.",
  "Open Signal on your phone, choose Settings, then Linked devices, then Link new device, and scan this code. You need not transfer your message history.":
    "Öffne Signal auf dem Telefon, wähle Einstellungen, dann Gekoppelte Geräte, dann Neues Gerät koppeln, und scanne diesen Code. Den Nachrichtenverlauf musst du nicht übertragen.",
  "This account was not linked with a phone in time. Choose Connect now on the page, or run `palaver platforms connect signal`, and scan the new code.":
    "Dieses Konto wurde nicht rechtzeitig mit einem Telefon gekoppelt. Wähle „Jetzt verbinden“ oder führe `palaver platforms connect signal` aus, und scanne den neuen Code.",
  "signal-cli is not installed: there is no program {program}. {fix}": "signal-cli ist nicht installiert: Es gibt kein Programm {program}. {fix}",
  "{program} can't be started: {reason}. {fix}": "{program} kann nicht gestartet werden: {reason}. {fix}",
  "{program} does not work: {reason}. {fix}": "{program} funktioniert nicht: {reason}. {fix}",
  "signal-cli needs Java, which is not installed. {fix}": "signal-cli braucht Java, das nicht installiert ist. {fix}",
  "Signal no longer accepts this version of signal-cli. {fix}": "Signal akzeptiert diese Version von signal-cli nicht mehr. {fix}",
  "The Java on this machine is too old for this signal-cli. {fix}": "Das Java auf diesem Rechner ist zu alt für dieses signal-cli. {fix}",
  "signal-cli did not answer within {seconds} seconds.": "signal-cli hat nicht innerhalb von {seconds} Sekunden geantwortet.",
  "signal-cli did not start within {seconds} seconds: {reason}": "signal-cli ist nicht innerhalb von {seconds} Sekunden gestartet: {reason}",
  "signal-cli has ended before it answered.": "signal-cli hat sich vor der Antwort beendet.",
  "signal-cli has ended (exit code {code}): {reason}": "signal-cli hat sich beendet (Exit-Code {code}): {reason}",
  "signal-cli has ended (exit code {code}).": "signal-cli hat sich beendet (Exit-Code {code}).",
  "signal-cli has linked this device, but has stored no account.": "signal-cli hat dieses Gerät gekoppelt, aber kein Konto gespeichert.",
  "signal-cli did not link this device in time.": "signal-cli hat dieses Gerät nicht rechtzeitig gekoppelt.",
  "signal-cli could not get a code to link this device: {reason}": "signal-cli konnte keinen Code zum Koppeln dieses Geräts bekommen: {reason}",
  "signal-cli refuses the message: {reason}": "signal-cli lehnt die Nachricht ab: {reason}",
  "signal-cli failed while the message was being sent (error {code}).": "signal-cli ist beim Senden der Nachricht gescheitert (Fehler {code}).",
  "This phone's account is in the folder of signal-cli already, and Signal still accepts it there. Set `config_folder` to another folder, or remove the device on the phone first.":
    "Das Konto dieses Telefons liegt schon im Ordner von signal-cli, und Signal akzeptiert es dort noch. Setze einen anderen Ordner, oder entferne zuerst das Gerät auf dem Telefon.",
  "The folder {folder} has several Signal accounts: {numbers}. Set `account` to the one to use.": "Der Ordner {folder} enthält mehrere Signal-Konten: {numbers}. Trage unter Konto das gewünschte ein.",
  "The folder {folder} has no Signal account {number}. Check `account`, or leave it out to use the account that is there.": "Der Ordner {folder} enthält kein Signal-Konto {number}. Prüfe das Feld Konto, oder lass es leer, um das vorhandene zu verwenden.",
  "The file {file} can't be read ({error}). Check its permissions, and that this is a folder of signal-cli.": "Die Datei {file} kann nicht gelesen werden ({error}). Prüfe ihre Rechte, und dass dies ein Ordner von signal-cli ist.",
  "Another process still writes into {folder}: a second Palaver, or a signal-cli that does not end. Stop it.": "Ein anderer Prozess schreibt noch in {folder}: ein zweites Palaver oder ein signal-cli, das sich nicht beendet. Beende ihn.",
  "Signal's server can't be reached right now.": "Der Server von Signal ist gerade nicht erreichbar.",
  "The disk is almost full, so Signal is paused. Free some space.": "Die Festplatte ist fast voll, daher pausiert Signal. Schaffe Platz.",
  "signal-cli {version} is too old: since {date}, versions before {oldest} miss messages. Install the newest one from https://github.com/AsamK/signal-cli/releases.":
    "signal-cli {version} ist zu alt: Seit {date} verpassen Versionen vor {oldest} Nachrichten. Installiere die neueste von https://github.com/AsamK/signal-cli/releases.",
  "This device was last connected {days} days ago. Signal removes a linked device that is not connected for {limit} days.": "Dieses Gerät war zuletzt vor {days} Tagen verbunden. Signal entfernt ein gekoppeltes Gerät, das {limit} Tage nicht verbunden ist.",
  "The phone of this account was last seen on {day}. Open Signal on it: Signal ends linked devices whose phone is not used.": "Das Telefon dieses Kontos war zuletzt am {day} aktiv. Öffne dort Signal: Signal beendet gekoppelte Geräte, deren Telefon nicht benutzt wird.",
  "Registered number": "Registrierte Nummer",
  "Linked device {id}, since {day}": "Gekoppeltes Gerät {id}, seit {day}",
  "Linked device {id}": "Gekoppeltes Gerät {id}",
  "Signal can't be reached right now.": "Signal ist gerade nicht erreichbar.",
  "Signal refuses this device right now.": "Signal lehnt dieses Gerät gerade ab.",
  "Signal asks to send more slowly.": "Signal bittet, langsamer zu senden.",

  // e-mail
  "authserv_id is not set, so no sender can be verified and no mail is answered. Open a mail in this mailbox, show its source, and copy the first word after the topmost Authentication-Results: (such as mx.example.org) into authserv_id.":
    "Die Kennung des Mailservers ist nicht gesetzt, daher kann kein Absender geprüft werden, und keine Mail wird beantwortet. Öffne eine Mail in diesem Postfach, zeige ihren Quelltext und kopiere das erste Wort nach dem obersten Authentication-Results: (etwa mx.example.org) in dieses Feld.",
  "allow_unverified_senders is on: anyone who can send mail to this mailbox can pretend to be anyone. Use it only where no stranger can send mail.":
    "Ungeprüfte Absender sind erlaubt: Wer an dieses Postfach schreiben kann, kann sich für jeden ausgeben. Nutze es nur, wo niemand Fremdes Mails senden kann.",
  "The server can't push new mail: it is checked every {seconds} seconds.": "Der Server kann neue Mails nicht melden: Es wird alle {seconds} Sekunden nachgesehen.",
  "Mails not read because their sender is not verified: {count}. The last one: {reason}": "Mails, die nicht gelesen wurden, weil ihr Absender nicht geprüft ist: {count}. Die letzte: {reason}",
  "{host} can't sign the account in at the moment.": "{host} kann das Konto gerade nicht anmelden.",
  "{host} refuses the user name or the password (SMTP). Most providers want an app password here.": "{host} lehnt Benutzername oder Passwort ab (SMTP). Die meisten Anbieter verlangen hier ein App-Passwort.",
  "{host} refuses the user name or the password. Most providers want an app password here, and IMAP has to be switched on in the settings of the mailbox.":
    "{host} lehnt Benutzername oder Passwort ab. Die meisten Anbieter verlangen hier ein App-Passwort, und IMAP muss in den Einstellungen des Postfachs eingeschaltet sein.",
  "The certificate of {host} is not valid: {reason}. Check the name of the server, or set ca_file for a server with its own certificate.":
    "Das Zertifikat von {host} ist nicht gültig: {reason}. Prüfe den Namen des Servers, oder setze die Zertifikatsdatei für einen Server mit eigenem Zertifikat.",
  "The certificate of {host} is not valid: {reason}.": "Das Zertifikat von {host} ist nicht gültig: {reason}.",
  "{host} offers no encryption or no sign-in. Check smtp_port and smtp_security.": "{host} bietet keine Verschlüsselung oder keine Anmeldung. Prüfe SMTP-Port und SMTP-Verschlüsselung.",
  "{host} can't be reached at port {port} (SMTP, {error}). Check smtp_host, smtp_port and smtp_security.": "{host} ist an Port {port} nicht erreichbar (SMTP, {error}). Prüfe SMTP-Server, SMTP-Port und SMTP-Verschlüsselung.",
  "{host} can't be reached at port {port} ({error}). Check imap_host and imap_port.": "{host} ist an Port {port} nicht erreichbar ({error}). Prüfe IMAP-Server und IMAP-Port.",
  "{host} does not speak TLS at port {port} ({error}). Check imap_port and imap_security.": "{host} spricht an Port {port} kein TLS ({error}). Prüfe IMAP-Port und IMAP-Verschlüsselung.",
  "{host} does not offer STARTTLS. Set imap_security to tls.": "{host} bietet kein STARTTLS. Setze die IMAP-Verschlüsselung auf TLS.",
  "{host} does not accept connections at the moment.": "{host} nimmt gerade keine Verbindungen an.",
  "{host} has sent data before the encryption began.": "{host} hat Daten gesendet, bevor die Verschlüsselung begann.",
  "{host} does not answer.": "{host} antwortet nicht.",
  "{host} sends too much as an answer to {command}.": "{host} sendet zu viel als Antwort auf {command}.",
  "{host} gives mails no lasting numbers (UIDVALIDITY).": "{host} gibt Mails keine dauerhaften Nummern (UIDVALIDITY).",
  "{host} sends a list of mails that can't be read: it is too long.": "{host} sendet eine Liste von Mails, die nicht gelesen werden kann: Sie ist zu lang.",
  "The connection to {host} broke ({error}).": "Die Verbindung zu {host} ist abgebrochen ({error}).",
  "The connection to {host} is closed.": "Die Verbindung zu {host} ist geschlossen.",
  "The server can't take a user name or password with letters beyond ASCII.": "Der Server nimmt keinen Benutzernamen und kein Passwort mit Umlauten oder Sonderzeichen an.",
  "ca_file can't be read: {reason}.": "Die Zertifikatsdatei kann nicht gelesen werden: {reason}.",
  "The server has given its mails new numbers.": "Der Server hat seinen Mails neue Nummern gegeben.",
  "The mail is no longer in the mailbox.": "Die Mail ist nicht mehr im Postfach.",
  "{reason}. Check the setting folder.": "{reason}. Prüfe das Feld Ordner.",

  // any platform: they fit many texts, so they come last
  "{platform} asks to wait {seconds} seconds.": "{platform} bittet, {seconds} Sekunden zu warten.",
  "{platform} can't be reached right now: {reason}": "{platform} ist gerade nicht erreichbar: {reason}",
  "{platform} can't be reached right now ({reason}).": "{platform} ist gerade nicht erreichbar ({reason}).",
  "{platform} did not confirm the message: {reason}": "{platform} hat die Nachricht nicht bestätigt: {reason}",
  "{platform} has refused the message: {reason}": "{platform} hat die Nachricht abgelehnt: {reason}",
  "{platform} could not deliver the message: {reason}": "{platform} konnte die Nachricht nicht zustellen: {reason}",
  "{platform} does not let the bot write here: {reason}": "{platform} lässt den Bot hier nicht schreiben: {reason}",
};
