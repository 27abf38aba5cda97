// Generated from the API's description by tools/types.mjs; do not edit. Digest: 005a1d04b3f2a7d09d98a58c38d49be3fd0bc9dcedb32bc8a2cb6a1904235cfd
export interface paths {
    "/api/sign-in": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List the ways to sign in on this server. */
        get: operations["list_sign_in_methods"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sign-in/link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Sign in with a link. Each link works once. */
        post: operations["sign_in_by_link"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sign-in/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Sign in with your name and password. */
        post: operations["sign_in_by_password"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sign-in/passkey/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Get the options for `navigator.credentials.get()`, to be parsed with `parseRequestOptionsFromJSON`. */
        post: operations["get_passkey_sign_in_options"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sign-in/passkey": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Sign in with a passkey. */
        post: operations["sign_in_by_passkey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sign-out": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Sign this browser out. */
        post: operations["sign_out"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sign-out/everywhere": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Sign out in every browser, including this one. API tokens keep working until you revoke them. */
        post: operations["sign_out_everywhere"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Get your account, the server's version and the agent that answers. */
        get: operations["get_me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** @description Change your name, with which you also sign in, or your time zone, in which new jobs run. */
        patch: operations["update_me"];
        trace?: never;
    };
    "/api/me/welcome": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Decline or finish choosing a name and a way to sign in; `needs_welcome` is false from now on. */
        post: operations["finish_welcome"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/steps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** @description Skip a step of setting up the server, so that the page no longer offers it, or offer it again. */
        put: operations["set_step_skipped"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description Download everything that is stored about you as one .zip file: conversations, files, memories, jobs and usage.
         *
         *     It is made while it is sent. One download at a time, and five in an hour.
         */
        get: operations["export_my_data"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/storage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Get how much space your files take, and how much they may. */
        get: operations["get_my_storage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** @description Set or change your password. This signs you out everywhere else. */
        put: operations["set_my_password"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/passkeys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List your passkeys. */
        get: operations["list_my_passkeys"];
        put?: never;
        /** @description Add a passkey that your device has created. */
        post: operations["add_my_passkey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/passkeys/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Get the options for `navigator.credentials.create()`, to be parsed with `parseCreationOptionsFromJSON`. */
        post: operations["get_passkey_registration_options"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/passkeys/{passkey_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** @description Remove a passkey. */
        delete: operations["remove_my_passkey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/devices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List the browsers that are signed in to your account. */
        get: operations["list_my_devices"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/devices/{device_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** @description Sign out one of your browsers. Codes and sign-in links that were created there no longer work. */
        delete: operations["sign_out_device"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List your API tokens, without their secrets. */
        get: operations["list_my_tokens"];
        put?: never;
        /** @description Create an API token for a program. The response is the only one that contains its secret. */
        post: operations["create_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/tokens/{token_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** @description Revoke a token. */
        delete: operations["revoke_token"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List your chat accounts, and the link that waits for your confirmation. */
        get: operations["list_links"];
        put?: never;
        /** @description Ask to be linked with the code of your other account. Nothing is shared until both sides have confirmed. */
        post: operations["use_link_code"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/links/code": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Create a code, valid for 15 minutes. The one before no longer works. */
        post: operations["create_link_code"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/links/answer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Confirm or cancel the link that waits. When both sides have confirmed, the accounts are linked. */
        post: operations["answer_link"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/links/unlink": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Separate one of your chat accounts. It gets back what it had before the link; what is new since then stays. */
        post: operations["unlink_own_account"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/push-subscriptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Find out whether this browser gets notifications while the page is closed. */
        get: operations["get_push_status"];
        put?: never;
        /** @description Subscribe this browser. The subscription ends when you sign out, or when the push service says so. */
        post: operations["subscribe_to_push"];
        /** @description End the subscription of this browser. */
        delete: operations["unsubscribe_from_push"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/push-subscriptions/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Send a notification to this browser now, and report what its push service says. */
        post: operations["send_test_push"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/people": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List the people who use this server. Guests wrote in a chat and have not been let in yet. */
        get: operations["list_people"];
        put?: never;
        /** @description Invite a person. The response contains a sign-in link that works once, so tokens can't do this. */
        post: operations["create_person"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/people/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List the strangers who ask for access. */
        get: operations["list_pairing_requests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/people/requests/{request_id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Give a stranger access, and tell them. Returns the person who has it now. Tokens can't give `me`. */
        post: operations["approve_pairing_request"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/people/requests/{request_id}/deny": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Deny a stranger access, and tell them. They get no new code within the hour. */
        post: operations["deny_pairing_request"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/people/{person_id}/unlink": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Take a chat account out of a person. It gets back what it had before the link; what is new since then stays. */
        post: operations["unlink_account"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/people/{person_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** @description Remove a person's access. Their conversations stay. */
        delete: operations["remove_person"];
        options?: never;
        head?: never;
        /** @description Change a person's name or role. Making someone a guest signs them out everywhere. */
        patch: operations["update_person"];
        trace?: never;
    };
    "/api/people/{person_id}/erasure": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Count what erasing a person would delete. Nothing is changed. */
        get: operations["preview_erasure"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/people/{person_id}/erase": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * @description Erase a person everywhere. This can't be undone.
         *
         *     Their messages in conversations with others become entries of kind `erased`. The response comes when everything is
         *     gone; if the connection breaks before, the server goes on.
         */
        post: operations["erase_person"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/people/{person_id}/link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Create a sign-in link that works once. Earlier links no longer work. Tokens can't do this. */
        post: operations["create_sign_in_link"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List conversations, newest first. Empty ones are left out. */
        get: operations["list_sessions"];
        put?: never;
        /** @description Start a new conversation. Lists show it after its first message. */
        post: operations["create_session"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Get a conversation. */
        get: operations["get_session"];
        put?: never;
        post?: never;
        /** @description Permanently delete a conversation and all its messages. Its cost stays in the usage reports. */
        delete: operations["delete_session"];
        options?: never;
        head?: never;
        /** @description Change a conversation. If one of the changes is not possible, none is made. */
        patch: operations["update_session"];
        trace?: never;
    };
    "/api/sessions/{session_id}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description Read a conversation: visible messages and other events, oldest first.
         *
         *     By default its end, or else the part before, after or around an event.
         */
        get: operations["list_messages"];
        put?: never;
        /**
         * @description Send a message. The response confirms that it is stored; the agent's answer arrives on the live stream.
         *
         *     Sending it again with the same key has no effect; the outcome is then `duplicate`. Slash commands work here too. If
         *     the outcome is `rejected`, nothing was stored, and `reply` says why. With `reply_to: origin` the answer is also sent
         *     to the chat that the conversation comes from, with your message quoted above it; replies to commands are not.
         */
        post: operations["send_message"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Read the complete log after an event, including hidden messages. */
        get: operations["list_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/toolsets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List the toolsets that the operator allows for you in a conversation, including those that are turned off. */
        get: operations["list_toolsets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** @description Mark everything up to an event as read. An earlier event than the last one changes nothing. */
        put: operations["mark_read"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description Export a conversation: `jsonl` and `json` contain the complete log, `markdown` and `html` what people see.
         *
         *     `jsonl` can be imported again. `html` is one file that needs nothing else, with images and without scripts.
         */
        get: operations["export_session"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Stop the current answer. What was written so far is kept. */
        post: operations["stop_answer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Undo the last turns. They are hidden, not deleted. */
        post: operations["undo_turns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/redo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Redo what the last undo hid. */
        post: operations["redo_turns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Regenerate an answer in place. The previous version is kept, with everything that followed it. */
        post: operations["retry_turn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/version": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Show another version of a message, with everything that followed it. The agent sees that version only. */
        post: operations["choose_version"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Revert the last restart, switch, branch or summary. */
        post: operations["restore_session"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/compact": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Compact the context: the agent sees a summary of the older messages, people still see all of them. */
        post: operations["compact_session"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/fork": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Create a copy of your own, up to and including the turn of a message. The original doesn't change. */
        post: operations["fork_session"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/edit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Edit a message: send another version of it in its place, or in a new conversation with all that came before. */
        post: operations["edit_message"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description List the newest deliveries of a conversation, oldest first: answers sent to chat platforms, and their state.
         *
         *     The next page has those before them.
         */
        get: operations["list_deliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/deliveries/{delivery_id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Send a failed or uncertain delivery again. If an uncertain one did arrive, this delivers it twice. */
        post: operations["retry_delivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description List the messages to chat platforms that failed or may not have arrived, and were not dismissed.
         *
         *     They are those of your conversations; owners who ask for `all` get those of everybody, and notices.
         */
        get: operations["list_undelivered"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/deliveries/resolve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * @description Settle messages that failed or may not have arrived. One that is settled already is left as it is.
         *
         *     So two owners who send the same messages again at once send them once.
         */
        post: operations["resolve_undelivered"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/temporary/answers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * @description Answer the last message of a temporary conversation.
         *
         *     Nothing that was said is stored, logged or found by searches: you send all messages with each question, and keep the
         *     answer yourself. The agent has no tools and no memory here. Only usage is recorded, without texts. To stop the
         *     answer, close the connection.
         */
        post: operations["answer_temporary_question"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Search for messages, newest first. To read a match in context, list the messages `around` its `seq`. */
        get: operations["search_messages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/search/people": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List the people who take part in your conversations, you included, to search for what they wrote. */
        get: operations["list_search_people"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/projects": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List your projects, sorted by name. */
        get: operations["list_projects"];
        put?: never;
        /** @description Create a project. */
        post: operations["create_project"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/projects/{project_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** @description Delete a project. Its conversations stay. */
        delete: operations["delete_project"];
        options?: never;
        head?: never;
        /** @description Change a project's name, color or instructions. */
        patch: operations["update_project"];
        trace?: never;
    };
    "/api/prompts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List your saved prompts, sorted by name. */
        get: operations["list_saved_prompts"];
        put?: never;
        /** @description Save a prompt. */
        post: operations["create_saved_prompt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/prompts/{prompt_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** @description Delete a saved prompt. */
        delete: operations["delete_saved_prompt"];
        options?: never;
        head?: never;
        /** @description Change a saved prompt. */
        patch: operations["update_saved_prompt"];
        trace?: never;
    };
    "/api/memories": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List the memories that you can see, newest first. With a query, list those that contain all its words. */
        get: operations["list_memories"];
        put?: never;
        /** @description Save a private memory. If the same one already exists, it is returned unchanged. */
        post: operations["create_memory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/memories/{memory_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** @description Delete a memory, for everyone who can see it. */
        delete: operations["delete_memory"];
        options?: never;
        head?: never;
        /** @description Change a memory, for everyone who can see it. */
        patch: operations["update_memory"];
        trace?: never;
    };
    "/api/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List your jobs by name. */
        get: operations["list_jobs"];
        put?: never;
        /** @description Make a job. You can have one job of a name. */
        post: operations["create_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Check a new job or a change of one, and get it in words, with its next times and what it may cost. */
        post: operations["preview_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Get what you can choose from when you make a job. */
        get: operations["get_job_options"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{job_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Get a job, and what it means. */
        get: operations["get_job"];
        put?: never;
        post?: never;
        /** @description Delete a job and stop its run. The conversations of its runs stay. */
        delete: operations["delete_job"];
        options?: never;
        head?: never;
        /** @description Change a job. A paused job stays paused; one that has ended and gets further times is active again. */
        patch: operations["update_job"];
        trace?: never;
    };
    "/api/jobs/{job_id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Pause a job. A run that is under way goes on. */
        post: operations["pause_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{job_id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Let a job run again from its next time on. */
        post: operations["resume_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{job_id}/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Confirm a job, or the change of one, that the agent has proposed. */
        post: operations["confirm_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{job_id}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Reject what the agent has proposed. A job that was only proposed is deleted. */
        post: operations["reject_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{job_id}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Run a job now, besides its schedule. Repeating it with the same key returns the same run. */
        post: operations["run_job"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{job_id}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List the runs of a job, the newest first. */
        get: operations["list_job_runs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List the models that you can choose for a conversation, and the default. */
        get: operations["list_models"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/offered": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description List the models of all connected providers that you may choose, as the providers say. It takes up to 15 seconds.
         *
         *     The lists are up to ten minutes old.
         */
        get: operations["list_offered_models"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/profiles": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List the profiles and personalities that you can choose; none for guests. */
        get: operations["list_profiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/policies": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List when conversations restart, what happens while the agent is busy, and the settings behind both. */
        get: operations["list_policies"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/retention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Return how long conversations are kept. */
        get: operations["get_retention"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/retention/prune": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * @description Delete everybody's conversations that were not used for so long, except pinned ones and those in use.
         *
         *     One request works for about five seconds. If there may be more, `is_complete` is false: a preview then counts at
         *     least so many, and another deletion goes on.
         */
        post: operations["prune_sessions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/retention/rewrite-file": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * @description Rewrite the file of a SQLite database, so that it has no bytes of what was deleted. Messages wait meanwhile.
         *
         *     PostgreSQL needs `VACUUM FULL` in the database instead.
         */
        post: operations["rewrite_database_file"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description Return all settings with their values, and everything that a page needs to offer them.
         *
         *     Settings with a name that you choose, such as `providers.<name>.api_key`, are listed for the names that exist;
         *     `templates` has all of them. The value of a secret is never returned.
         */
        get: operations["get_settings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * @description Set and unset settings: all of them, or none if one is not valid (422, with `problems`).
         *
         *     They are in force on this server when the response comes, and on all others of the same database within a second.
         *     Answers that are being written keep the settings with which they have started.
         */
        patch: operations["change_settings"];
        trace?: never;
    };
    "/api/settings/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List who has changed which settings, newest first. The values of secrets are never shown. */
        get: operations["list_settings_changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/settings/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Put back the values from before a change. That is a change itself, and can be undone. */
        post: operations["undo_settings_change"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/settings/models/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * @description Let a model of a provider answer one short question, with values that need not be stored. It costs a few tokens.
         *
         *     The answer comes after at most 45 seconds. A provider that refuses is no error of this request: `error` says why.
         */
        post: operations["run_provider_test"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/settings/models/available": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List the models that a provider of the settings offers, as the provider says. It takes at most 15 seconds. */
        get: operations["list_available_models"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/settings/platforms/{platform}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * @description Sign in to an account with values that need not be stored, and sign out again; it is not connected.
         *
         *     The answer comes after at most about a minute.
         */
        post: operations["run_account_test"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/commands": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List the commands that you can use, in the order of /help. */
        get: operations["list_commands"];
        put?: never;
        /** @description Run a command. If it can't be carried out, the outcome is `rejected` and `reply` says why. */
        post: operations["run_command"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Get tokens and cost by day, model, platform, person or conversation; by default of the last thirty days. */
        get: operations["get_usage_report"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/budgets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List your budgets; with `all`, everybody's that have a limit or were used this month. */
        get: operations["list_budgets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/budgets/{scope}/{subject}/{period}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** @description Set limits of one budget. They apply from the next call to a model, and win over config.yaml. */
        put: operations["set_budget_limits"];
        post?: never;
        /** @description Remove the limits that were set for one budget, so that the server settings apply. */
        delete: operations["clear_budget_limits"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description Stream everything that changes in the conversations you can see.
         *
         *     You receive each event of a followed conversation once and in order. After a lost connection, reconnect with the
         *     last `id:` as `Last-Event-ID` to receive what you missed first. `session`, `turn`, `draft` and `delivery` carry the
         *     current state and may be repeated. A `draft` with `replaces_draft` contains the whole draft and replaces what you
         *     have. `lists_changed` means that lists may have changed while you were disconnected: fetch them again. With too many
         *     streams, your oldest one ends, or the new one is refused with 429.
         */
        get: operations["open_live_stream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/imports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List your imports of the last day, the newest first. */
        get: operations["list_imports"];
        put?: never;
        /**
         * @description Upload an export of ChatGPT, Claude, Open WebUI or Palaver, to import it for yourself.
         *
         *     The body is the file itself. It is checked in the background; nothing is imported before you start it. An uploaded
         *     file is deleted after a day.
         */
        post: operations["upload_import"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/imports/{import_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Get one import: how far it is, what would come in, or what has come in. */
        get: operations["get_import"];
        put?: never;
        post?: never;
        /** @description Delete an uploaded file or the report of an import. What was imported stays. */
        delete: operations["delete_import"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/imports/{import_id}/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * @description Import a file that is `ready`. It goes on by itself, also after a restart of the server.
         *
         *     What is here already is left as it is, so importing the same file again changes nothing.
         */
        post: operations["start_import"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/attachments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * @description Upload one file. Attach it to a message within a day, or it is deleted; until then only you can see it.
         *
         *     Supported are images (PNG, JPEG, GIF, WebP), PDF, Word, Excel, PowerPoint, OpenDocument, EPUB, audio (MP3, Ogg,
         *     FLAC, WAV, M4A) and UTF-8 text, up to 20 MB.
         */
        post: operations["upload_attachment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/attachments/{attachment_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Download a file that you have uploaded, or that is attached to a conversation you can see. */
        get: operations["download_attachment"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/speech": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Find out whether recordings can be transcribed and answers read aloud. */
        get: operations["get_speech"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/attachments/{attachment_id}/transcript": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * @description Transcribe a recording that you have uploaded, or that is attached to a conversation you can see.
         *
         *     Nothing is stored. It counts as usage, and against your budget.
         */
        post: operations["transcribe_attachment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/messages/{seq}/speech": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * @description Read an answer aloud: returns one piece of it as audio. A long answer has several pieces.
         *
         *     It counts as usage of the conversation, and against your budget.
         */
        post: operations["speak_answer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/sessions/{session_id}/shares": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description Share a conversation: make a read-only copy of its current state for anyone who has the link. */
        post: operations["create_share"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/shares": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List your shares. Owners list everybody's with `all`. */
        get: operations["list_shares"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/shares/{share_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** @description Stop sharing a copy. The link stops working. */
        delete: operations["delete_share"];
        options?: never;
        head?: never;
        /** @description Change when a link expires. One that has expired works again, until its copy is deleted 7 days later. */
        patch: operations["change_share"];
        trace?: never;
    };
    "/api/shared/{secret}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Read a shared conversation. Anyone with its secret can; no sign-in is needed. A link that has expired: 410. */
        get: operations["get_shared_conversation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/platforms": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description List all accounts on chat platforms that are set up or connected, or have open or failed deliveries.
         *
         *     An account that is not `live` neither receives nor sends messages. Any server on the same database gives the same
         *     answer, whichever of them runs the account.
         */
        get: operations["list_platforms"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/platforms/{platform}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * @description Test the connection of an account, and return the account; `last_test` is the outcome.
         *
         *     An account that is live signs in again; any other is connected now instead of after its pause. It works for accounts
         *     that another server on the same database runs. The answer comes after at most half a minute.
         */
        post: operations["request_test"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description List the last lines of the server's log, for owners. Tokens need the scope `admin`. */
        get: operations["list_logs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/health/details": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Check the installation like `palaver doctor`, for owners; takes up to 45 seconds. Nothing is changed. */
        get: operations["get_health_details"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/update-notes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Get what is new in the running version. */
        get: operations["get_update_notes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description Settings of an account, which need not be stored; a stored one that is left out is used. */
        AccountTestIn: {
            /**
             * @description Its name; empty for the only one.
             * @default
             */
            account?: string;
            settings?: {
                [key: string]: unknown;
            };
        };
        /** @description The outcome of signing in. The account is not connected. */
        AccountTestJson: {
            ok: boolean;
            seconds: number;
            /** @description The name of the account on the platform. */
            name: string | null;
            /** @description False: it has to be linked with a phone after it is saved. */
            is_linked: boolean;
            warnings: string[];
            details: string[];
            error: string | null;
        };
        /** @description An action without parameters. */
        ActionIn: {
            /** @description Your own id for this request. Repeating it with the same key has no effect. */
            key?: string | null;
        };
        /** @description The agent that answers here. */
        AgentJson: {
            model: string;
            description: string;
        };
        /** @description Whether the agent can use its memory for you. */
        AgentMemoryJson: {
            /** @description Whether the agent's memory is turned on. */
            enabled: boolean;
            /** @description Whether the agent may use it for people with your role. */
            allowed: boolean;
            /** @description The platforms on which the agent may use it; null for all. */
            platforms: string[] | null;
            /** @description Whether the agent learns facts by itself when a conversation ends. */
            learn: boolean;
        };
        /** @description The models of all connected providers. */
        AllOfferedModelsJson: {
            providers: components["schemas"]["OfferedModelsJson"][];
        };
        /** @description The answer. */
        AnswerMessage: {
            /** @constant */
            role: "assistant";
            content: string;
            refusal: null;
        };
        /** @description The access of the stranger: `member`, `guest` (only in these direct messages) or `me` (it is your account). */
        ApprovalIn: {
            grant: components["schemas"]["Grant"];
        };
        /** @description An uploaded file. */
        AttachmentJson: {
            /** @example a_0123456789abcdef01234567 */
            id: string;
            name: string;
            /** @description The media type, detected from the content and not from the name. */
            media_type: string;
            /** @description In bytes. */
            size: number;
        };
        /** @description The author of a message in a conversation with several people. */
        AuthorJson: {
            name: string;
            id: string | null;
        };
        /** @description The models of a provider, as it lists them. */
        AvailableModelsJson: {
            /** @description Without the provider: `provider:name` is the name of a model in settings. */
            models: string[];
        };
        /** @description One window of a budget: a day or a month of everybody together, a person, a job or a profile. */
        BudgetJson: {
            scope: components["schemas"]["BudgetScope"];
            /** @description The id of a person or job, or the name of a profile; empty for all together, or each of them. */
            subject: string;
            period: components["schemas"]["BudgetPeriod"];
            /** Format: date-time */
            resets_at: string;
            /** @description The time zone in which days and months begin. */
            timezone: string;
            /** @description For people to read. */
            subject_name: string;
            /** @description In US dollars, as a decimal. */
            used_usd: string;
            /** @description Held for calls that are running: the most that they can cost. */
            held_usd: string;
            /** @description Null: no limit. */
            limit_usd: string | null;
            used_tokens: number;
            held_tokens: number;
            /** @description Null: no limit. */
            limit_tokens: number | null;
            /** @description Calls whose price is unknown and not part of `used_usd`. */
            unpriced_calls: number;
            /** @description How much of the tighter limit is used or held; null without a limit. */
            percent: number | null;
            /** @description An owner has set a limit for exactly this; otherwise the server settings apply. */
            is_limit_set: boolean;
        };
        /** @enum {string} */
        BudgetPeriod: "day" | "month";
        /** @enum {string} */
        BudgetScope: "all" | "person" | "job" | "profile";
        /** @description Budgets. */
        BudgetsJson: {
            budgets: components["schemas"]["BudgetJson"][];
            /** @description For members: budgets shared with others that are used up. Owners see those among `budgets`. */
            used_up: components["schemas"]["UsedUpBudgetJson"][];
            /** @description Pass this to get the next page; null on the last page. */
            next_cursor: string | null;
        };
        /**
         * @description The treatment of a message that arrives while the agent is answering another one.
         * @enum {string}
         */
        BusyPolicy: "queue" | "steer" | "interrupt" | "reject";
        /** @description One key of a change. A secret is shown as `set`, with its last characters if it is long. */
        ChangeItemJson: {
            key: string;
            before: unknown;
            after: unknown;
            is_secret: boolean;
        };
        /** @description An account on a chat platform. */
        ChatAccountJson: {
            platform: string;
            /** @description The platform's own id of the user, which never changes. */
            account: string;
        };
        /** @description A complete answer. */
        ChatCompletion: {
            id: string;
            /** @constant */
            object: "chat.completion";
            created: number;
            model: string;
            choices: components["schemas"]["Choice"][];
            usage: components["schemas"]["CompletionUsage"];
            /** @description `session_id`: the id of the conversation. */
            metadata: {
                [key: string]: string;
            };
        };
        /** @description A request for an answer, in OpenAI's format. */
        ChatCompletionRequest: {
            /** @default palaver */
            model?: string;
            messages: components["schemas"]["ChatMessage"][];
            /** @default false */
            stream?: boolean;
            stream_options?: components["schemas"]["StreamOptions"] | null;
            n?: 1 | null;
            /** @description Not supported: the agent uses its own tools. */
            tools?: unknown[] | null;
            /** @description Your own name for a conversation. Requests with the same name continue it. */
            user?: string | null;
            /** @description `session_id`: the id of a conversation to continue. */
            metadata?: {
                [key: string]: unknown;
            } | null;
        };
        /** @description One message of a request. */
        ChatMessage: {
            /** @enum {string} */
            role: "system" | "developer" | "user" | "assistant" | "tool" | "function";
            content?: string | {
                [key: string]: unknown;
            }[] | null;
        };
        /** @description The chat that a conversation comes from. */
        ChatSourceJson: {
            platform: string;
            chat_name: string | null;
            user_name: string | null;
        };
        /**
         * @description The type of a chat; some adapters say `forum`, which counts as a group.
         * @enum {string}
         */
        ChatType: "dm" | "group" | "channel" | "thread";
        /** @description An answer. There is always exactly one. */
        Choice: {
            /** @constant */
            index: 0;
            message: components["schemas"]["AnswerMessage"];
            /**
             * @description `length` if the answer was interrupted.
             * @enum {string}
             */
            finish_reason: "stop" | "length";
            logprobs: null;
        };
        /** @description The version to show. */
        ChooseVersionIn: {
            /** @description Your own id for this request. Repeating it with the same key has no effect. */
            key?: string | null;
            /** @description The number of the message whose versions these are. */
            seq: number;
            /** @description The number of the version, from 1. */
            version: number;
        };
        /** @description A slash command to run. */
        CommandIn: {
            /** @example /new Trip to Lisbon */
            text: string;
            key: string;
            /** @description The conversation to run it in. */
            session_id?: string | null;
        };
        /** @description A slash command. */
        CommandJson: {
            name: string;
            usage: string;
            summary: string;
        };
        /** @description The slash commands that you can use. */
        CommandsJson: {
            commands: components["schemas"]["CommandJson"][];
        };
        /** @description Options for the summary. */
        CompactIn: {
            /** @description What the summary should keep in particular. */
            focus?: string | null;
            key?: string | null;
        };
        /** @description Tokens used, as reported by the provider. */
        CompletionUsage: {
            prompt_tokens: number;
            completion_tokens: number;
            total_tokens: number;
            prompt_tokens_details: {
                [key: string]: number;
            };
            completion_tokens_details: {
                [key: string]: number;
            };
        };
        /** @description The result of a test of the connection. */
        ConnectionTestJson: {
            /** Format: date-time */
            finished_at: string;
            /** @description How long it took. */
            seconds: number;
            /** @description Why it failed, in words; null if it worked, or waits to be linked. */
            error: string | null;
        };
        /** @description A conversation, as you see it. */
        ConversationJson: {
            /** @example 20261115_081200_1a2b3c4d */
            id: string;
            /** @description The title that a person chose; unique for its owner. */
            title: string | null;
            /** @description The first words, or a model's title after the first answer. Null before the first words. */
            auto_title: string | null;
            /** @description What to call the conversation: its title, its automatic title or the name of its chat. */
            display_name: string;
            preview: string;
            platform: string;
            /** @enum {string} */
            chat_type: "dm" | "group" | "channel" | "thread";
            /** @description Several people take part. */
            shared: boolean;
            source: components["schemas"]["ChatSourceJson"];
            message_count: number;
            /** @description How many tool calls the agent has made here, including undone ones. */
            tool_call_count: number;
            /** @description It is the first conversation with its person or, if several people take part, in its chat. */
            is_first_contact: boolean;
            /** Format: date-time */
            created_at: string;
            /** @description When it was last active; null while it is empty. Lists leave empty conversations out. */
            active_at: string | null;
            ended_at: string | null;
            /** @description Why it has ended: `idle` and `daily` by the reset policy, the others because its chat moved on. */
            end_reason: ("idle" | "daily" | "manual" | "forced" | "switched" | "restored") | null;
            pinned: boolean;
            archived: boolean;
            project_id: string | null;
            /** @description The conversation that this one was forked from. */
            parent_id: string | null;
            /** @description The model that answered last. */
            model: string | null;
            /** @description The provider of the model that answered last; null if unknown. */
            model_provider: string | null;
            /** @description The model chosen for this conversation; null for that of its profile, or else the default. */
            chosen_model: string | null;
            /** @description The name of the profile chosen for this conversation; null for the default. */
            profile: string | null;
            /** @description The name of the personality chosen for this conversation. */
            personality: string | null;
            /** @description The folder or topic of this conversation, which the agent is told. */
            workspace: string | null;
            /** @description The busy policy chosen for this conversation; null for the server's setting. */
            busy_policy: components["schemas"]["BusyPolicy"] | null;
            /** @description Names of the toolsets that are turned off in this conversation. */
            disabled_toolsets: string[];
            /** @description The agent is responding. */
            running: boolean;
            /** @description How many messages are queued. */
            queued: number;
            /** @description The number of the last event in the log. */
            last_seq: number;
            /** @description The number of the last event that you have read. */
            read_seq: number;
            /** @description How many tokens the model received for the last answer; 0 if unknown, for example after a compaction. */
            context_tokens: number;
            usage: components["schemas"]["ConversationUsageJson"];
            /** @description Answers can be delivered to the chat that the conversation comes from. */
            reachable: boolean;
            /** @description The name of the person it belongs to; only in requests with `all`. */
            owner_name: string | null;
        };
        /** @description Tokens that a conversation used, and their cost. */
        ConversationUsageJson: {
            input_tokens: number;
            output_tokens: number;
            cache_read_tokens: number;
            cache_write_tokens: number;
            reasoning_tokens: number;
            /** @description The cost in US dollars; null if it is unknown. */
            cost_usd: string | null;
            /** @description Turns whose cost is unknown and not part of `cost_usd`. */
            unpriced_turns: number;
            /** @enum {string} */
            cost_status: "unknown" | "estimated" | "actual";
        };
        /** @description A page of conversations, newest first. */
        ConversationsJson: {
            sessions: components["schemas"]["ConversationJson"][];
            /** @description Pass this to get the next page; null on the last page. Any page may have fewer than `limit` items. */
            next_cursor: string | null;
        };
        /** @enum {string} */
        CostBasis: "runs" | "estimate" | "unknown";
        /** @description A page of a conversation's deliveries, oldest first. */
        DeliveriesJson: {
            deliveries: components["schemas"]["DeliveryJson"][];
            /** @description How many deliveries the conversation has in all. */
            total: number;
            /** @description Pass this as `cursor` to get the deliveries before these; null if there are none. */
            next_cursor: string | null;
        };
        /** @description An answer, or a message that a job or the agent sent, on its way to a chat platform. */
        DeliveryJson: {
            id: string;
            /** @description Only for answers. */
            turn_id: string | null;
            /** @description The number of the message that is answered. Only for answers. */
            input_seq: number | null;
            /** @description The number of the message itself, if it is not an answer. */
            message_seq: number | null;
            /** @description Messages quoted above the answer. */
            quoted_seqs: number[];
            platform: string;
            /** @enum {string} */
            state: "pending" | "sending" | "sent" | "uncertain" | "failed";
            /** @description Why it failed, is uncertain or will be retried. */
            error: string | null;
            /**
             * Format: date-time
             * @description When the answer was finished.
             */
            created_at: string;
            ended_at: string | null;
        };
        /** @enum {string} */
        DeliveryState: "pending" | "sending" | "sent" | "uncertain" | "failed";
        /** @description A browser that is signed in to your account. */
        DeviceJson: {
            id: string;
            name: string;
            /** @description How it signed in: `link`, `password` or `passkey`. */
            sign_in_method: string;
            /** @description The IP address that it signed in from. */
            ip_address: string;
            /** Format: date-time */
            signed_in_at: string;
            /** Format: date-time */
            last_seen_at: string;
            /** @description Whether this request comes from it. */
            is_current: boolean;
        };
        /** @description Browsers signed in to your account, newest first. */
        DevicesJson: {
            devices: components["schemas"]["DeviceJson"][];
        };
        /** @description A new version of an earlier message. */
        EditIn: {
            /** @description The number of the message to replace. */
            seq: number;
            content: string | ({
                [key: string]: unknown;
            } | string)[];
            key: string;
            busy_policy?: components["schemas"]["BusyPolicy"] | null;
            /** @description Ids of files to attach: those of the earlier message or others. */
            attachment_ids?: string[];
            /**
             * @description Send it in a new conversation, with a copy of everything before it. Otherwise it replaces the message in place, and the other version is kept.
             * @default false
             */
            branch?: boolean;
        };
        /** @description The conversation that the message was sent in, and what happened to it. */
        EditJson: {
            session: components["schemas"]["ConversationJson"];
            receipt: components["schemas"]["ReceiptJson"];
        };
        /** @description The name of the person, typed to confirm. */
        ErasureIn: {
            name: string;
        };
        /** @description A count of what was erased. */
        ErasureJson: {
            /** @description How many there were of each kind. */
            counts: {
                [key: string]: number;
            };
            ended_at: string | null;
        };
        /** @description The person who would be erased, and how much would go. */
        ErasurePreviewJson: {
            person_id: string;
            /** @description Send it back to confirm. */
            name: string;
            /** @description How many there are of each kind: conversations, messages, files … */
            counts: {
                [key: string]: number;
            };
        };
        /** @description An explanation of an error. */
        ErrorBody: {
            /**
             * @description A stable identifier for programs.
             * @example session_not_found
             */
            code: string;
            /** @description An explanation for people. */
            message: string;
            /** @description The values mentioned in the message, for programs. */
            facts: {
                [key: string]: unknown;
            };
        };
        /** @description An explanation of an error. */
        ErrorDetail: {
            message: string;
            type: string;
            param: string | null;
            code: string | null;
        };
        /** @description An error. Every error response has this shape. */
        ErrorOut: {
            error: components["schemas"]["ErrorBody"];
        };
        /**
         * @description Everything that can be found: the code, what was checked, what was found, and how to fix it.
         * @enum {string}
         */
        FindingCode: "check_failed" | "check_broken" | "checks_not_started" | "checks_too_slow" | "checks_without_result" | "versions" | "clock_wrong" | "clock_differs" | "clock_agrees" | "clock" | "time_zone" | "server_runs" | "server_problem" | "server_silent" | "server_stopped" | "turns_waiting" | "port_free" | "port_taken" | "sandbox" | "sandbox_missing" | "documents_contained" | "documents_not_contained" | "configuration_valid" | "configuration_missing" | "configuration_problem" | "setting_problem" | "home_missing" | "home_not_folder" | "home_of_other_user" | "home_not_writable" | "home_private" | "home_readable" | "disk_full" | "disk_small" | "disk" | "backup_missing" | "backup_old" | "backup" | "files_missing" | "files" | "database_missing" | "database_driver_missing" | "database_old" | "database" | "database_too_new" | "database_damaged" | "database_error" | "integrity_ok" | "integrity_problem" | "integrity_repairable" | "platforms_none" | "account_problem" | "account_idle" | "account_failed" | "account_runs" | "account_warning" | "deliveries_failed" | "sign_in_failed" | "sign_in_too_slow" | "sign_in_error" | "sign_in_warning" | "sign_in" | "model_unusable" | "model_demo" | "model_not_tried" | "model_too_slow" | "model_over_budget" | "model_failed" | "model_empty" | "model_answers";
        /** @description The result of a check. */
        FindingJson: {
            /** @description A stable identifier for programs. */
            code: components["schemas"]["FindingCode"];
            subject: string;
            /** @enum {string} */
            severity: "ok" | "warning" | "problem";
            text: string;
            /** @description How to fix it: a command, or a key of the settings with what to write there. */
            fix: string | null;
            /** @description The values mentioned in `text` and `fix`, for programs. */
            facts: {
                [key: string]: string;
            };
        };
        /** @description The message to branch off at, and the title of the new conversation. */
        ForkIn: {
            /** @description Copy everything up to the turn of this message, inclusive; null copies everything. */
            up_to_seq?: number | null;
            title?: string | null;
        };
        /** @description A text that a form asks for, besides the fields that have a place of their own there. */
        FormFieldJson: {
            name: string;
            label: string;
            help: string;
            max_chars: number;
        };
        /**
         * @description The access that an approval gives to the account that asked.
         * @enum {string}
         */
        Grant: "member" | "guest" | "me";
        /** @description The result of `palaver doctor`. */
        HealthDetailsJson: {
            /** @description Whether there are no problems; there may be warnings. */
            ok: boolean;
            findings: components["schemas"]["FindingJson"][];
            version: string;
            /** Format: date-time */
            checked_at: string;
            duration_seconds: number;
        };
        /** @description The health of the server. */
        HealthJson: {
            /** @constant */
            status: "ok";
            version: string;
        };
        /** @description The default chat of a platform, from config.yaml or chosen with `/sethome`. */
        HomeChannelJson: {
            /** @description For people to read; empty if it is not known. */
            name: string;
            /** @description Where deliveries to the platform go, such as `telegram:42`. */
            target: string;
        };
        /** @description A file that was uploaded to import it, and what has become of it. */
        ImportJson: {
            /** @example imp_0123456789abcdef */
            id: string;
            name: string;
            /** @description In bytes. */
            size: number;
            created_at: string;
            /** @enum {string} */
            state: "checking" | "ready" | "importing" | "done" | "failed";
            /** @description `chatgpt`, `claude`, `open-webui` or `palaver`, once it is recognized. */
            format: string | null;
            /** @description The conversations that were looked at or imported so far. */
            progress: number;
            /** @description All conversations in the file, if that is known. */
            total: number | null;
            /** @description What would come in (`ready`), or has come in (`done`). */
            report: components["schemas"]["ReportJson"] | null;
            /** @description Why it failed. */
            error: components["schemas"]["ErrorBody"] | null;
        };
        /** @description Your imports of the last day, and how large a file may be. */
        ImportsJson: {
            imports: components["schemas"]["ImportJson"][];
            max_bytes: number;
        };
        /** @description A person, and the sign-in link to send them. */
        InvitationJson: {
            person: components["schemas"]["MemberJson"];
            link: components["schemas"]["SignInLinkJson"];
        };
        /** @description A job, and what it means. */
        JobDetailsJson: {
            name: string;
            prompt: string;
            /**
             * @description As it is stored.
             * @example 0 7 * * MON-FRI
             */
            schedule: string;
            /**
             * @description The schedule in words, with the time zone.
             * @example every weekday at 07:00 (Europe/Vienna)
             */
            words: string;
            timezone: string;
            /** @description Scheduled runs that are left; null: without end. */
            runs_left: number | null;
            /** @description The model that it has chosen; null: the default. */
            model: string | null;
            profile: string | null;
            id: string;
            /** @description On whose behalf it runs. */
            person_id: string;
            person_name: string;
            targets: string[];
            /** @description The toolsets that its runs may use. */
            toolsets: string[];
            state: components["schemas"]["JobState"];
            /** @description Why it is paused or has ended, if there is more to say. */
            state_reason: string | null;
            /** @description The agent has proposed a change that waits for confirmation. */
            has_proposed_change: boolean;
            /** @description When you were asked to confirm what the agent has proposed. */
            asked_at: string | null;
            /** @description Its next scheduled time; null unless it is active. */
            next_slot: string | null;
            /** @description How many runs have failed in a row. */
            failure_count: number;
            /** @description Where it was made. */
            origin_platform: string;
            /** @description The conversation in which it was made. */
            origin_session_id: string | null;
            last_run: components["schemas"]["LastRunJson"] | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            preview: components["schemas"]["JobPreviewJson"];
            /** @description The job as it would be with the change that the agent proposes. */
            proposed_change: components["schemas"]["JobPreviewJson"] | null;
        };
        /**
         * @description The fields of a job.
         *
         *     In a change, a field that is missing or null stays as it is; null resets the model, the profile and `repeat`.
         */
        JobFieldsIn: {
            /** @description Its name; by default the first words of the prompt. */
            name?: string | null;
            /** @description What the agent should do. */
            prompt?: string | null;
            /**
             * @description When it runs: `30m` (once, in 30 minutes), `every 2h`, five fields of cron by the wall clock of the time zone, or a time such as `2026-12-24 18:00`.
             * @example 0 7 * * MON-FRI
             */
            schedule?: string | null;
            /**
             * @description An IANA time zone, such as Europe/Berlin; yours by default.
             * @example Europe/Vienna
             */
            timezone?: string | null;
            /** @description Where the answer goes: `origin` (where the job is made, the default), `local` (a file), a platform (its home channel) or `platform:chat[:thread]`. */
            targets?: string[] | null;
            /** @description The toolsets that its runs may use; `history` and `memory` by default, if you may use them. */
            toolsets?: string[] | null;
            /** @description How many scheduled runs it has; 0: without end. */
            repeat?: number | null;
            /** @description The model; `default` for the default. */
            model?: string | null;
            /** @description A profile of the settings; `default` for none. */
            profile?: string | null;
        };
        /** @description A new job. `prompt` and `schedule` are required. */
        JobIn: {
            /** @description Its name; by default the first words of the prompt. */
            name?: string | null;
            /** @description What the agent should do. */
            prompt?: string | null;
            /**
             * @description When it runs: `30m` (once, in 30 minutes), `every 2h`, five fields of cron by the wall clock of the time zone, or a time such as `2026-12-24 18:00`.
             * @example 0 7 * * MON-FRI
             */
            schedule?: string | null;
            /**
             * @description An IANA time zone, such as Europe/Berlin; yours by default.
             * @example Europe/Vienna
             */
            timezone?: string | null;
            /** @description Where the answer goes: `origin` (where the job is made, the default), `local` (a file), a platform (its home channel) or `platform:chat[:thread]`. */
            targets?: string[] | null;
            /** @description The toolsets that its runs may use; `history` and `memory` by default, if you may use them. */
            toolsets?: string[] | null;
            /** @description How many scheduled runs it has; 0: without end. */
            repeat?: number | null;
            /** @description The model; `default` for the default. */
            model?: string | null;
            /** @description A profile of the settings; `default` for none. */
            profile?: string | null;
            /** @description The conversation in which it is made; its target `origin` leads there. */
            session_id?: string | null;
        };
        /** @description A job. */
        JobJson: {
            name: string;
            prompt: string;
            /**
             * @description As it is stored.
             * @example 0 7 * * MON-FRI
             */
            schedule: string;
            /**
             * @description The schedule in words, with the time zone.
             * @example every weekday at 07:00 (Europe/Vienna)
             */
            words: string;
            timezone: string;
            /** @description Scheduled runs that are left; null: without end. */
            runs_left: number | null;
            /** @description The model that it has chosen; null: the default. */
            model: string | null;
            profile: string | null;
            id: string;
            /** @description On whose behalf it runs. */
            person_id: string;
            person_name: string;
            targets: string[];
            /** @description The toolsets that its runs may use. */
            toolsets: string[];
            state: components["schemas"]["JobState"];
            /** @description Why it is paused or has ended, if there is more to say. */
            state_reason: string | null;
            /** @description The agent has proposed a change that waits for confirmation. */
            has_proposed_change: boolean;
            /** @description When you were asked to confirm what the agent has proposed. */
            asked_at: string | null;
            /** @description Its next scheduled time; null unless it is active. */
            next_slot: string | null;
            /** @description How many runs have failed in a row. */
            failure_count: number;
            /** @description Where it was made. */
            origin_platform: string;
            /** @description The conversation in which it was made. */
            origin_session_id: string | null;
            last_run: components["schemas"]["LastRunJson"] | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        /** @description What you can choose from when you make a job. */
        JobOptionsJson: {
            /** @description Your time zone, or the server's if you have chosen none. */
            timezone: string;
            /** @description The toolsets that you can grant. */
            toolsets: components["schemas"]["NamedItemJson"][];
            default_toolsets: string[];
            /** @description Targets to choose from; others can be written, too. */
            targets: components["schemas"]["NamedItemJson"][];
            /** @description What a job can have besides, as a text each. */
            fields: components["schemas"]["FormFieldJson"][];
        };
        /** @description A new job or a change of one, to look at before it is made. */
        JobPreviewIn: {
            /** @description Its name; by default the first words of the prompt. */
            name?: string | null;
            /** @description What the agent should do. */
            prompt?: string | null;
            /**
             * @description When it runs: `30m` (once, in 30 minutes), `every 2h`, five fields of cron by the wall clock of the time zone, or a time such as `2026-12-24 18:00`.
             * @example 0 7 * * MON-FRI
             */
            schedule?: string | null;
            /**
             * @description An IANA time zone, such as Europe/Berlin; yours by default.
             * @example Europe/Vienna
             */
            timezone?: string | null;
            /** @description Where the answer goes: `origin` (where the job is made, the default), `local` (a file), a platform (its home channel) or `platform:chat[:thread]`. */
            targets?: string[] | null;
            /** @description The toolsets that its runs may use; `history` and `memory` by default, if you may use them. */
            toolsets?: string[] | null;
            /** @description How many scheduled runs it has; 0: without end. */
            repeat?: number | null;
            /** @description The model; `default` for the default. */
            model?: string | null;
            /** @description A profile of the settings; `default` for none. */
            profile?: string | null;
            /** @description The conversation in which it is made; its target `origin` leads there. */
            session_id?: string | null;
            /** @description The job that it changes. */
            job_id?: string | null;
        };
        /** @description A job as it is or will be, in words. */
        JobPreviewJson: {
            name: string;
            prompt: string;
            /**
             * @description As it is stored.
             * @example 0 7 * * MON-FRI
             */
            schedule: string;
            /**
             * @description The schedule in words, with the time zone.
             * @example every weekday at 07:00 (Europe/Vienna)
             */
            words: string;
            timezone: string;
            /** @description Scheduled runs that are left; null: without end. */
            runs_left: number | null;
            /** @description The model that it has chosen; null: the default. */
            model: string | null;
            profile: string | null;
            /** @description Its next times, at most three. */
            next_slots: string[];
            /** @description On average; null: it runs once. */
            runs_per_day: number | null;
            /** @description Estimated, in US dollars; null: unknown, which is not free. */
            cost_per_run_usd: string | null;
            /** @description Estimated, in US dollars; of a job that runs once, of its run. Null: unknown, which is not free. */
            cost_per_day_usd: string | null;
            /** @description `runs`: the average of its last runs. `estimate`: by the length of its prompt. `unknown`: the price of the model is not known. */
            cost_basis: components["schemas"]["CostBasis"];
            targets: components["schemas"]["NamedItemJson"][];
            toolsets: components["schemas"]["NamedItemJson"][];
            /** @description The model that answers. */
            used_model: string;
        };
        /**
         * @description The outcome of a run that is done.
         * @enum {string}
         */
        JobResult: "answer" | "silent";
        /** @description One run of a job: how it ended, what came out of it, and what was delivered. */
        JobRunJson: {
            id: string;
            /**
             * Format: date-time
             * @description The scheduled time; of a manual run, when it was asked for.
             */
            slot: string;
            /** @description More than 1: this many times from `slot` on were missed together. */
            slot_count: number;
            kind: components["schemas"]["JobRunKind"];
            state: components["schemas"]["JobRunState"];
            /** @description Why it failed, was missed or skipped. */
            reason: string | null;
            /** @description `silent`: the agent had nothing to report, and nothing was sent. */
            result: components["schemas"]["JobResult"] | null;
            /** @description Tools that the agent wanted to use and the job was not granted. */
            refused_tools: string[];
            deliveries: components["schemas"]["RunDeliveryJson"][];
            target_errors: components["schemas"]["TargetErrorJson"][];
            /** @description The conversation of the run. */
            session_id: string | null;
            /** Format: date-time */
            created_at: string;
            started_at: string | null;
            ended_at: string | null;
        };
        /** @enum {string} */
        JobRunKind: "scheduled" | "manual";
        /** @enum {string} */
        JobRunState: "queued" | "running" | "done" | "failed" | "missed" | "skipped";
        /** @description Runs of a job, the newest first. */
        JobRunsJson: {
            runs: components["schemas"]["JobRunJson"][];
        };
        /** @enum {string} */
        JobState: "proposed" | "active" | "paused" | "ended";
        /** @description Jobs by name; with `all`, those of all people, the oldest first. */
        JobsJson: {
            jobs: components["schemas"]["JobJson"][];
            /** @description Pass this to get the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description The latest run of a job. */
        LastRunJson: {
            id: string;
            /** Format: date-time */
            slot: string;
            state: components["schemas"]["JobRunState"];
            result: components["schemas"]["JobResult"] | null;
            reason: string | null;
            ended_at: string | null;
        };
        /** @description Limits to set. A unit that you leave out stays as it is; null means no limit, whatever config.yaml says. */
        LimitsIn: {
            /**
             * @description In US dollars, with at most 6 decimals.
             * @example 2.50
             */
            usd?: string | null;
            tokens?: number | null;
        };
        /** @description Your answer to the link that waits. */
        LinkAnswerIn: {
            /** @enum {string} */
            answer: "confirm" | "cancel";
        };
        /** @description The code that your other account got with `/link`. */
        LinkCodeIn: {
            code: string;
        };
        /** @description A code to send with `/link` from your other account. It is shown once. */
        LinkCodeJson: {
            code: string;
            /** Format: date-time */
            expires_at: string;
        };
        /** @description The result of a code or an answer. */
        LinkJson: {
            is_linked: boolean;
            pending: components["schemas"]["PendingLinkJson"] | null;
            /** @description Why nothing came of it; `text` says it in words. */
            problem: ("already_linked" | "both_sign_in" | "changed" | "lower_role" | "no_account" | "nothing_waits" | "too_many" | "wrong_code") | null;
            /** @description The same in words, as in a chat. */
            text: string;
        };
        /** @description A sign-in link. */
        LinkSignInIn: {
            /** @description The part of the link after `#`. */
            token: string;
        };
        /** @description One of your chat accounts. */
        LinkedAccountJson: {
            platform: string;
            account: string;
            /** @description Whether it was linked to your others, and gets back what it had when unlinked. */
            is_linked: boolean;
        };
        /** @description Instructions for linking a phone with an account. Only owners see it, and only while the account waits for it. */
        LinkingJson: {
            /** @description In words: which app, which menu. */
            instructions: string;
            /** @description A QR code to scan: a row of `1` (dark) and `0` (light) for each line. Draw it dark on light, with a margin of four squares. */
            qr_code: string[] | null;
            /** @description A code to type on the phone. */
            code: string | null;
            /** @description When it is replaced by a new one; null if that is not known. */
            expires_at: string | null;
        };
        /** @description Your chat accounts, and the link that waits for you. */
        LinksJson: {
            accounts: components["schemas"]["LinkedAccountJson"][];
            pending: components["schemas"]["PendingLinkJson"] | null;
        };
        /** @description One entry in a conversation's log. */
        LogEventJson: {
            /** @description The event's number in the log. */
            seq: number;
            kind: string;
            /** Format: date-time */
            at: string;
            /** @description It was hidden by an undo, an edit or another version. It is not deleted. */
            hidden: boolean;
            /** @description The person who caused it. */
            person: components["schemas"]["NamedPersonJson"] | null;
            /** @description Only for kind `message`. */
            message: components["schemas"]["MessageJson"] | null;
            /** @description Details, for all other kinds. */
            facts: {
                [key: string]: unknown;
            };
            /** @description For a person's message that has several versions. Not on the live stream. */
            version?: components["schemas"]["VersionJson"] | null;
        };
        /** @description A page of a conversation's log, oldest first. */
        LogPageJson: {
            events: components["schemas"]["LogEventJson"][];
            has_more_before: boolean;
            has_more_after: boolean;
        };
        /** @description The process whose lines are listed. Other servers on the same database have their own. */
        LogProcessJson: {
            id: string;
            host: string;
            pid: number;
            /** Format: date-time */
            started_at: string;
        };
        /** @description A line of the log. Secrets are removed from it; messages of people are never in it. */
        LogRecordJson: {
            no: number;
            at: string;
            level: string;
            logger: string;
            event: string;
            fields: {
                [key: string]: string;
            };
        };
        /** @description Lines of the log, oldest first. */
        LogsJson: {
            process: components["schemas"]["LogProcessJson"];
            records: components["schemas"]["LogRecordJson"][];
            /** @description Pass this as `cursor` to get what is logged later. */
            cursor: string;
            /** @description Whether these lines follow those before the given `cursor`. If not, they replace them: another process has answered, or more was logged meanwhile than is kept. */
            is_continued: boolean;
        };
        /** @description The last event that you have read. */
        MarkReadIn: {
            /** @description The number of the last event that you have read. */
            seq: number;
        };
        /** @description Your account, and the server that you are signed in to. */
        MeJson: {
            person: components["schemas"]["PersonJson"];
            sign_in_methods: components["schemas"]["SignInMethodsJson"];
            /** @description Whether the page should offer to choose a name and a way to sign in again. True after the first link, until you set a password, add a passkey or decline. */
            needs_welcome: boolean;
            version: string;
            /** @description How to call Palaver in a terminal of the server. */
            command: string;
            agent: components["schemas"]["AgentJson"];
            /** @description The time zone of people who have chosen none. */
            server_timezone: string;
            /** @description The steps of setting up the server that you have skipped: `model`, `platform`. */
            skipped_steps: string[];
        };
        /** @description A person, as the owner sees them. */
        MemberJson: {
            id: string;
            name: string;
            role: components["schemas"]["Role"];
            /** @description The person's time zone, an IANA name; null: the server's. */
            timezone: string | null;
            /** @description The platforms that they have written on. */
            platforms: string[];
            /** @description Their accounts on chat platforms. */
            chat_accounts: components["schemas"]["ChatAccountJson"][];
            /** @description How they can sign in; null if they can't. */
            sign_in_methods: components["schemas"]["SignInMethodsJson"] | null;
            /** @description When they last used the web page. */
            last_seen_at: string | null;
            /** Format: date-time */
            created_at: string;
            /** @description They use the terminal of the server, and therefore are always an owner. */
            uses_terminal: boolean;
        };
        /** @description A page of memories, newest first. */
        MemoriesJson: {
            memories: components["schemas"]["MemoryJson"][];
            /** @description Pass this to get the next page; null on the last page. */
            next_cursor: string | null;
            agent: components["schemas"]["AgentMemoryJson"];
        };
        /** @description A fact to remember. */
        MemoryIn: {
            /** @example My cat is called Ada. */
            text: string;
        };
        /** @description A memory: one fact that the agent remembers. */
        MemoryJson: {
            id: string;
            text: string;
            /** @description The name of the person who saved it in its current form, if known. */
            author_name: string | null;
            is_author: boolean;
            /**
             * Format: date-time
             * @description When it was saved in its current form.
             */
            created_at: string;
            /** @description It belongs to a chat with several people; changing it changes it for all of them. */
            shared: boolean;
            /** @description Names of other people who can see it; at most ten. */
            other_names: string[];
            /** @description How many other people can see it. */
            other_count: number;
            /** @description `person`: a person wrote or edited it; `agent`: the agent saved it during a conversation; `learned`: the agent learned it from a conversation that had ended or was compacted. */
            origin: components["schemas"]["MemoryOrigin"];
            /** @description The conversation that it is from, if you can see that one. */
            session_id: string | null;
        };
        /** @enum {string} */
        MemoryOrigin: "person" | "agent" | "learned";
        /** @description A message to send. */
        MessageIn: {
            /** @description Text, or a list of parts: text, `{type: text, text}`, or a file you uploaded, `{type: attachment, id}`. */
            content: string | ({
                [key: string]: unknown;
            } | string)[];
            /** @description Your own id for this message. Sending it again with the same key has no effect. */
            key: string;
            /** @description What to do if the agent is still answering another message. */
            busy_policy?: components["schemas"]["BusyPolicy"] | null;
            /** @description Ids of uploaded files to attach. */
            attachment_ids?: string[];
            /**
             * @description `session`: the answer only appears in the conversation. `origin`: it is also sent to the chat that the conversation comes from, if that is `reachable`.
             * @default session
             */
            reply_to?: components["schemas"]["ReplyTo"];
        };
        /** @description A message in the format that chat models use. */
        MessageJson: {
            /** @enum {string} */
            role: "system" | "user" | "assistant" | "tool";
            content: string | unknown[] | null;
            author?: components["schemas"]["AuthorJson"] | null;
            tool_calls?: unknown[] | null;
            tool_call_id?: string | null;
            tool_name?: string | null;
            reasoning?: string | null;
            interrupted?: boolean;
            is_error?: boolean;
            /** @description For a tool result: how long the tool took. For the last message of an answer: how long the agent took to answer. */
            duration_ms?: number | null;
            /** @description The number of the message that this one answers. */
            answers_seq?: number | null;
            /** @description Its author has changed it on the platform. `message_edited` events have the texts before. */
            edited?: boolean;
            /** @description When it was sent, as the platform says. */
            sent_at?: string | null;
            /** @description What was said in the group before it, and not to the agent. The agent sees it as a quote. */
            context?: components["schemas"]["QuotedMessageJson"][] | null;
            /** @description The message that it replies to. */
            replied_message?: components["schemas"]["QuotedMessageJson"] | null;
            /** @description Who sent it here, if it is neither a message nor an answer. */
            sent_by?: components["schemas"]["SentByJson"] | null;
        };
        /** @description A model. */
        ModelJson: {
            name: string;
            /** @description The context window in tokens; null if unknown. */
            context_window: number | null;
        };
        /** @description The models that you can choose. */
        ModelsJson: {
            models: components["schemas"]["ModelJson"][];
            default: string;
            /** @description How full a model's context may get before a summary of the conversation is made; null: never. */
            compaction_percent: number | null;
            /** @description Describes the agent that answers, and why it was chosen. */
            description: string;
            /** @description `GET /api/models/offered` may list more models. */
            are_more_offered: boolean;
        };
        /** @description Changes to your account. Fields that you leave out stay as they are. */
        MyAccountIn: {
            name?: string | null;
            /**
             * @description An IANA name; null: the server's time zone.
             * @example Europe/Berlin
             */
            timezone?: string | null;
        };
        /** @description A target or a toolset, and what it is in words. */
        NamedItemJson: {
            name: string;
            words: string;
        };
        /** @description A person: the id, and a name to show. */
        NamedPersonJson: {
            id: string;
            name: string;
        };
        /** @description A new passkey. */
        NewPasskeyIn: {
            name: string;
            /** @description The result of `navigator.credentials.create()` as JSON. */
            credential: {
                [key: string]: unknown;
            };
        };
        /** @description A new password. */
        NewPasswordIn: {
            current_password?: string | null;
            new_password: string;
        };
        /** @description A person to invite. */
        NewPersonIn: {
            name: string;
            /** @default member */
            role?: components["schemas"]["Role"];
        };
        /** @description A new project. */
        NewProjectIn: {
            name: string;
            /** @example #3b82f6 */
            color?: string | null;
        };
        /** @description A new saved prompt. */
        NewSavedPromptIn: {
            name: string;
            /** @example Explain {{topic}} to {{audience}}. */
            text: string;
        };
        /** @description A new conversation. */
        NewSessionIn: {
            title?: string | null;
            /** @description One of your projects, by id or name. */
            project?: string | null;
            /** @description The model to use; null for the default. */
            model?: string | null;
            /** @description The name of the profile to use; null for the default. */
            profile?: string | null;
            /** @description The name of the personality to use. */
            personality?: string | null;
            /** @description A folder or topic that the agent is told: one line of text. */
            workspace?: string | null;
            /** @description Your own id for this request. Repeating it with the same key returns the same conversation. */
            key?: string | null;
        };
        /** @description A new shared link. */
        NewShareIn: {
            /** @description null: never. Without it, as `web.shared_link_days` says. */
            expires_at?: string | null;
        };
        /** @description A new API token. */
        NewTokenIn: {
            name: string;
            scopes: components["schemas"]["Scope"][];
            expires_in_days?: number | null;
        };
        /** @description A new API token with its secret. */
        NewTokenJson: {
            token: components["schemas"]["TokenJson"];
            /** @description Shown only once: store it now. */
            secret: string;
        };
        /** @description Notes about an import: how many, and the first of them. */
        NotesJson: {
            count: number;
            listed: string[];
        };
        /** @description The models of a provider, as it says itself. */
        OfferedModelsJson: {
            provider: string;
            title: string;
            models: string[];
            /** @description Why they are not known, in the words of the provider. */
            error: string | null;
        };
        /** @description An error in OpenAI's format. */
        OpenAIError: {
            error: components["schemas"]["ErrorDetail"];
        };
        /** @description A model. */
        OpenAIModel: {
            id: string;
            /** @constant */
            object: "model";
            created: number;
            owned_by: string;
        };
        /** @description The available models. */
        OpenAIModelList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["OpenAIModel"][];
        };
        /** @description One of your chat accounts. */
        OwnAccountIn: {
            platform: string;
            account: string;
        };
        /** @description A stranger who asks for access. The stranger has a code, which is not shown here. */
        PairingRequestJson: {
            id: string;
            platform: string;
            /** @description The platform's own id of the stranger, which never changes. */
            account: string;
            /** @description As the stranger calls themselves. */
            name: string;
            /** @description A channel, in which all who can post write as the channel: only a guest. */
            is_channel: boolean;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string;
        };
        /** @description Requests for access, the oldest first. */
        PairingRequestsJson: {
            requests: components["schemas"]["PairingRequestJson"][];
        };
        /** @description A passkey. */
        PasskeyJson: {
            id: string;
            name: string;
            /** @description The host that it was created for; it works only there. */
            site: string;
            /** Format: date-time */
            created_at: string;
            last_used_at: string | null;
        };
        /** @description A passkey. */
        PasskeySignInIn: {
            /** @description The result of `navigator.credentials.get()` as JSON. */
            credential: {
                [key: string]: unknown;
            };
        };
        /** @description Your passkeys, newest first. */
        PasskeysJson: {
            passkeys: components["schemas"]["PasskeyJson"][];
        };
        /** @description A name and a password. */
        PasswordSignInIn: {
            name: string;
            password: string;
        };
        /** @description A link that waits until both sides have confirmed. */
        PendingLinkJson: {
            other_name: string;
            other_platform: string;
            /** @description Only of a chat account that has sent your code. */
            other_account: string | null;
            /** @description Whether you have asked for the code. */
            is_issuer: boolean;
            /** @description Whether you have confirmed. */
            is_confirmed: boolean;
            is_other_confirmed: boolean;
            /** @description How much you share, by kind. */
            shares: {
                [key: string]: number;
            };
            /** @description How much you get; null until the other side has confirmed. */
            gets: {
                [key: string]: number;
            } | null;
            /** @description The role of both afterwards; null until the side that has it has confirmed. */
            role: components["schemas"]["Role"] | null;
            /** @description The name of the person with whom everything new after the link stays. */
            kept_by: string;
            /** Format: date-time */
            expires_at: string;
        };
        /** @description A page of people, newest first. */
        PeopleJson: {
            people: components["schemas"]["MemberJson"][];
            next_cursor: string | null;
        };
        /** @description Changes to a person. Fields that you leave out stay as they are. */
        PersonChangesIn: {
            name?: string | null;
            role?: components["schemas"]["Role"] | null;
        };
        /** @description A person. */
        PersonJson: {
            id: string;
            name: string;
            role: components["schemas"]["Role"];
            /** @description The person's time zone, an IANA name; null: the server's. */
            timezone: string | null;
        };
        /** @description A personality: a style that is added to the agent's instructions. */
        PersonalityJson: {
            name: string;
            instructions: string;
        };
        /** @description An account on a platform. Problems with deliveries are those of the last 24 hours. */
        PlatformAccountJson: {
            /** @description When it came into this state; null if it has never run. */
            since: string | null;
            /** @description Its name on the platform, such as `@palaver_bot`. */
            name: string | null;
            /** @description What is missing for it to work fully, in words. */
            warnings: string[];
            /** @description Versions, the age of a linked device and the like, in words. */
            details: string[];
            /** @description When it last received a message. */
            last_message_at: string | null;
            /** @description The last problem with the connection, in words. */
            error: string | null;
            error_at: string | null;
            /** @description How the latest test of the connection has ended. */
            last_test: components["schemas"]["ConnectionTestJson"] | null;
            platform: string;
            /** @description Its name in the settings; empty for the only one. */
            account: string;
            /** @description It is set up in the settings. */
            configured: boolean;
            /**
             * @description `off`: no process runs it. `linking`: it waits until an owner links it with a phone, as `linking` says. `live`: it receives and sends. `deaf`: nothing was heard from the platform for too long, so it is connected again. `refused`: the platform refuses it, or its settings are not valid; `error` says why.
             * @enum {string}
             */
            state: "off" | "connecting" | "linking" | "live" | "deaf" | "refused";
            /** @description How to link it, while its state is `linking`. Tokens do not get it. */
            linking: components["schemas"]["LinkingJson"] | null;
            /** @description Deliveries that are pending or being sent. */
            waiting: number;
            /** @description Deliveries with unknown status: they may or may not have arrived. */
            uncertain: number;
            /** @description Deliveries that failed and will not be retried. */
            failed: number;
            /** @description The error of the last failed or uncertain delivery. */
            delivery_error: string | null;
            delivery_error_at: string | null;
            /** @description The default chat of the platform, if it sends there. */
            home_channel: components["schemas"]["HomeChannelJson"] | null;
        };
        /** @description One setting of an account, for a form: `platforms.<platform>.settings.<name>`. */
        PlatformFieldJson: {
            name: string;
            label: string;
            /** @enum {string} */
            kind: "text" | "integer" | "number" | "boolean" | "choice";
            help: string;
            /** @description Where to get the value. */
            where: string;
            is_secret: boolean;
            is_required: boolean;
            is_list: boolean;
            is_terminal_only: boolean;
            choices: string[];
            pattern: string | null;
            minimum: number | null;
            maximum: number | null;
            default: unknown;
            /** @description The environment variable that can set it. */
            variable: string | null;
        };
        /** @description A platform that can be connected. */
        PlatformFormJson: {
            platform: string;
            label: string;
            summary: string;
            /** @description Why it can't be connected here, such as a package that is missing. */
            problem: string | null;
            /** @description How to connect it. */
            steps: string[];
            /** @description The platform calls this server, so `web.public_url` has to be set. */
            needs_public_url: boolean;
            /** @description An account is linked with a QR code after it was saved. */
            can_be_linked: boolean;
            fields: components["schemas"]["PlatformFieldJson"][];
        };
        /** @description Accounts, sorted by platform and name. */
        PlatformsJson: {
            accounts: components["schemas"]["PlatformAccountJson"][];
        };
        /** @description The default policies, and those of each platform that is set up or that you have used. */
        PoliciesJson: {
            default: components["schemas"]["PolicyJson"];
            platforms: components["schemas"]["PolicyJson"][];
        };
        /** @description The policies of a platform. */
        PolicyJson: {
            /** @description Null for all platforms without policies of their own. */
            platform: string | null;
            /** @description Empty if conversations never restart automatically. */
            reset_rules: components["schemas"]["ResetRuleJson"][];
            /** @description What happens to a message that arrives while the agent is busy. */
            busy_policy: components["schemas"]["BusyPolicy"];
            busy_setting_key: string;
            is_busy_default: boolean;
        };
        /** @description A profile: the agent's instructions, model and tools for a kind of work. */
        ProfileJson: {
            name: string;
            /** @description For people to read; empty: its name. */
            title: string;
            /** @description A small picture as a data URL. */
            picture: string | null;
            description: string;
            /** @description The model of its conversations; null for the default. */
            model: string | null;
            /** @description It has only these of the allowed toolsets; null for all of them. */
            toolsets: string[] | null;
            /** @description When its conversations in chats restart; null: as those without a profile. */
            session_reset: components["schemas"]["ResetPolicyJson"] | null;
        };
        /** @description The profiles and personalities that conversations can choose. */
        ProfilesJson: {
            profiles: components["schemas"]["ProfileJson"][];
            personalities: components["schemas"]["PersonalityJson"][];
        };
        /** @description Changes to a project. Fields that you leave out stay as they are. */
        ProjectChangesIn: {
            name?: string | null;
            color?: string | null;
            /** @description Empty: without any. */
            instructions?: string | null;
        };
        /** @description A project: a folder for conversations. */
        ProjectJson: {
            id: string;
            name: string;
            color: string | null;
            session_count: number;
            /** Format: date-time */
            created_at: string;
            /** @description What the agent is told in your own conversations of this project. */
            instructions: string | null;
        };
        /** @description Your projects, sorted by name. */
        ProjectsJson: {
            projects: components["schemas"]["ProjectJson"][];
        };
        /** @description A provider of models that many people use. */
        ProviderPresetJson: {
            name: string;
            title: string;
            /** @description Set `providers.<name>.base_url` to this; null: not needed. */
            base_url: string | null;
            needs_key: boolean;
            /** @description Where to get an API key. */
            key_page: string | null;
            default_model: string | null;
        };
        /** @description A provider to test, with values that need not be stored. */
        ProviderTestIn: {
            provider: string;
            /** @description Null: the key of the settings. */
            api_key?: string | null;
            /** @description Null: the address of the settings. A stored key is not sent to another address. */
            base_url?: string | null;
            /** @description Without the provider; null: its usual model, or its first. */
            model?: string | null;
        };
        /** @description The outcome of a round trip to a model. */
        ProviderTestJson: {
            ok: boolean;
            model: string | null;
            seconds: number;
            /** @description What the model has answered. */
            reply: string | null;
            error: string | null;
            /** @description What the provider itself said. */
            detail: string | null;
            /** @description Of the error: its `code`, and the values that it mentions. */
            facts: {
                [key: string]: unknown;
            };
        };
        /** @description The conversations to delete. */
        PruneIn: {
            older_than_days: number;
            platform?: string | null;
            /**
             * @description Only count. Send false to delete.
             * @default true
             */
            dry_run?: boolean;
        };
        /** @description A count of what was deleted, or would be. */
        PruneJson: {
            sessions: number;
            messages: number;
            /** @description Of the logs, about. */
            bytes: number;
            /** @description The last activity of the conversation unused for longest. */
            oldest: string | null;
            newest: string | null;
            is_dry_run: boolean;
            /** @description False: the time of one request was up. Send it again to go on. */
            is_complete: boolean;
        };
        /** @description The keys of a subscription, in base64url. */
        PushKeysIn: {
            p256dh: string;
            auth: string;
        };
        /** @description The notifications of this browser, and the key to subscribe to. */
        PushStatusJson: {
            /** @description Whether the operator allows notifications. */
            is_enabled: boolean;
            is_subscribed: boolean;
            /** @description The `applicationServerKey` for `PushManager.subscribe()`. */
            server_key: string;
        };
        /** @description The result of `PushManager.subscribe()` as JSON. */
        PushSubscriptionIn: {
            endpoint: string;
            keys: components["schemas"]["PushKeysIn"];
        };
        /** @description A message of another person in the chat. */
        QuotedMessageJson: {
            author: string | null;
            text: string;
        };
        /** @description The last event that you have read; this number never goes down. */
        ReadPositionJson: {
            read_seq: number;
        };
        /** @description Problems that limit the server, and the health of its accounts on chat platforms. */
        ReadinessJson: {
            /** @constant */
            status: "ok";
            version: string;
            /**
             * @description `problem`: an account that this server runs is not connected. `/api/platforms` says which and why.
             * @enum {string}
             */
            platforms: "ok" | "problem";
            problems: components["schemas"]["ReadinessProblemJson"][];
        };
        /** @description Something that limits the server. */
        ReadinessProblemJson: {
            /**
             * @description A stable identifier for programs.
             * @enum {string}
             */
            code: "database_slow" | "database_locked" | "disk_full" | "disk_nearly_full" | "too_many_connections" | "turns_waiting";
            message: string;
        };
        /** @description What happened to a message or command. When you receive this, everything in it is stored durably. */
        ReceiptJson: {
            /** @enum {string} */
            outcome: "accepted" | "queued" | "merged" | "steered" | "interrupting" | "command" | "duplicate" | "rejected" | "recorded" | "ignored";
            session_id: string | null;
            turn_id: string | null;
            /** @description The message's number in the log. */
            seq: number | null;
            /** @description How many turns of the same conversation come first. */
            turns_ahead: number;
            /** @description Palaver's own reply to a command or refused message, in Markdown. */
            reply: string | null;
            /** @description The result of a command, for programs. */
            facts: {
                [key: string]: unknown;
            };
        };
        /**
         * @description The destination of the answer to a message from the web, the terminal or the API.
         * @enum {string}
         */
        ReplyTo: "session" | "origin";
        /** @description A count of what an import would bring in, or has brought in. */
        ReportJson: {
            format: string;
            /** @description True: this is what would come in. */
            dry_run: boolean;
            /** @description By what is counted: `conversations`, `messages`, `unchanged`, … */
            counts: {
                [key: string]: number;
            };
            /** @description What could not be read or stored, and where. */
            problems: components["schemas"]["NotesJson"];
            /** @description What was stored several times there and comes in once. */
            folded: components["schemas"]["NotesJson"];
            /** @description What is different here, or was left as it is. */
            notes: components["schemas"]["NotesJson"];
        };
        /** @enum {string} */
        ResetMode: "none" | "idle" | "daily" | "both";
        /** @description The times when conversations restart automatically. */
        ResetPolicyJson: {
            mode: components["schemas"]["ResetMode"];
            /** @description With `idle` and `both`: restart after this long without a human message. */
            idle_minutes: number;
            /** @description With `daily` and `both`: restart at this hour. */
            at_hour: number;
            /** @description The time zone of `at_hour`. */
            timezone: string;
            /** @description Whether Palaver tells the person about a restart. */
            notify: boolean;
        };
        /** @description A rule for when conversations restart automatically. */
        ResetRuleJson: {
            mode: components["schemas"]["ResetMode"];
            /** @description With `idle` and `both`: restart after this long without a human message. */
            idle_minutes: number;
            /** @description With `daily` and `both`: restart at this hour. */
            at_hour: number;
            /** @description The time zone of `at_hour`. */
            timezone: string;
            /** @description Whether Palaver tells the person about a restart. */
            notify: boolean;
            /** @description The types of chats that this rule applies to. */
            chat_types: components["schemas"]["ChatType"][];
            /**
             * @description The setting behind it.
             * @example reset_by_platform.telegram
             */
            setting_key: string;
            /** @description The operator has not changed this setting. */
            is_default: boolean;
        };
        /**
         * @description What a person decides about a delivery that failed or may not have arrived.
         * @enum {string}
         */
        Resolution: "resend" | "sent" | "not_sent" | "dismiss";
        /** @description What to do with undelivered messages. */
        ResolutionIn: {
            /**
             * @description The ids of deliveries.
             * @example [
             *       "d_1a2b3c4d5e6f7a8b"
             *     ]
             */
            ids: string[];
            /** @description `resend`: send them again; one that did arrive is then delivered twice. `sent`, `not_sent`: record what became of uncertain ones. `dismiss`: take them off the list. */
            action: components["schemas"]["Resolution"];
        };
        /** @description What was done. */
        ResolvedJson: {
            /** @description The ids of what was changed. */
            resolved: string[];
            /** @description The ids of what was settled before, or does not exist for you. */
            unchanged: string[];
        };
        /** @description The policy that the operator has set. */
        RetentionJson: {
            /** @description Conversations are deleted so long after the last activity. */
            max_age_days: number | null;
            /** @description Above this size, those unused for longest are deleted (SQLite). */
            max_database_mb: number | null;
            /** @description The policy as a sentence. */
            text: string;
        };
        /** @description The answer to regenerate. */
        RetryIn: {
            /** @description Your own id for this request. Repeating it with the same key has no effect. */
            key?: string | null;
            /** @description The number of the message to ask again; null: the last one. */
            seq?: number | null;
        };
        /** @description The space that rewriting the database file has saved. */
        RewrittenFileJson: {
            /** @description How many bytes smaller the file is. Null: PostgreSQL. */
            saved_bytes: number | null;
        };
        /** @enum {string} */
        Role: "owner" | "member" | "guest";
        /** @description What became of one message with the answer of a run. */
        RunDeliveryJson: {
            id: string;
            /** @description Where it goes, such as `telegram:42`. */
            target: string;
            platform: string;
            state: components["schemas"]["DeliveryState"];
            error: string | null;
            ended_at: string | null;
        };
        /** @description Changes to a saved prompt. Fields that you leave out stay as they are. */
        SavedPromptChangesIn: {
            name?: string | null;
            text?: string | null;
        };
        /** @description A saved prompt. `{{word}}` in its text is a placeholder. */
        SavedPromptJson: {
            id: string;
            name: string;
            text: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        /** @description Your saved prompts, sorted by name. */
        SavedPromptsJson: {
            prompts: components["schemas"]["SavedPromptJson"][];
            /** @description What a prompt can have besides its name and its text. */
            fields: components["schemas"]["FormFieldJson"][];
        };
        /** @enum {string} */
        Scope: "read" | "write" | "chat" | "admin";
        /** @description A message that matches. */
        SearchHitJson: {
            session_id: string;
            title: string | null;
            /** @description Whether the conversation is archived. */
            archived: boolean;
            /** @description The name of the person whose conversation it is; only in requests with `all`. */
            owner_name: string | null;
            seq: number;
            /** Format: date-time */
            at: string;
            role: string;
            snippet: string;
            /** @description The parts of the snippet to highlight: start and end (exclusive) of each. */
            highlights: [
                number,
                number
            ][];
        };
        /** @description People in your conversations, by name. */
        SearchPeopleJson: {
            people: components["schemas"]["NamedPersonJson"][];
        };
        /** @description A page of matching messages, newest first. */
        SearchResultsJson: {
            hits: components["schemas"]["SearchHitJson"][];
            /** @description Whether some messages, for example of an import, are not indexed yet and may be missing. Search again in a moment. */
            is_indexing: boolean;
            /** @description Pass this as `cursor` to get the next page; null on the last page. */
            next_cursor: string | null;
        };
        /** @description A job, or the agent at the request of a person in another conversation. */
        SentByJson: {
            /** @enum {string} */
            kind: "job" | "agent";
            /** @description The name of the job, or of the person who asked the agent. */
            name: string;
            job_id: string | null;
            run_id: string | null;
            /** @description The conversation of the job's run, or in which the agent was asked. */
            session_id: string | null;
        };
        /** @description The ways to sign in on this server, besides with a link. */
        ServerSignInMethodsJson: {
            password: boolean;
            passkey: boolean;
            /** @description What the owner runs on the server for a new link. */
            link_command: string;
        };
        /** @description Changes to a conversation. Fields that you leave out stay as they are. */
        SessionChangesIn: {
            /** @description Null removes the title. */
            title?: string | null;
            /** @default false */
            pinned?: boolean;
            /** @default false */
            archived?: boolean;
            /** @description By id or name. Null removes the conversation from its project. */
            project?: string | null;
            /** @description Null resets to the default. */
            model?: string | null;
            /** @description Null resets to the default. */
            profile?: string | null;
            /** @description Null removes the personality. */
            personality?: string | null;
            /** @description Null removes the workspace. */
            workspace?: string | null;
            /** @description Null resets to the server's setting. */
            busy_policy?: components["schemas"]["BusyPolicy"] | null;
            /** @description Turns toolsets on or off, by name; others stay as they are. Null turns all allowed ones on. */
            toolsets?: {
                [key: string]: boolean;
            } | null;
        };
        /** @description One setting now. */
        SettingJson: {
            /** @example turns.max_running */
            key: string;
            /** @description The key of its template, with `<name>` for names that you choose. */
            template: string;
            /** @description Null for a secret. */
            value: unknown;
            /** @description Whether it has a value that is not the default. */
            is_set: boolean;
            is_secret: boolean;
            /** @description The last characters of a long secret in the database. */
            hint: string | null;
            source: components["schemas"]["SettingSourceJson"];
            /** @description Whether it can be changed with this API. */
            can_change: boolean;
            /** @description Why the stored value can't be used; the default applies instead. */
            problem: string | null;
        };
        /** @description What settings and their values are called, for people. */
        SettingNamesJson: {
            /** @description By a part of a key, such as `turns` or `max_running`. */
            parts: {
                [key: string]: string;
            };
            /** @description By the last part of a key, and the value. */
            choices: {
                [key: string]: {
                    [key: string]: string;
                };
            };
        };
        /** @description A stored value that can't be used. */
        SettingProblemJson: {
            key: string;
            message: string;
        };
        /** @description Where the value of a setting comes from. */
        SettingSourceJson: {
            /**
             * @description `file` (config.yaml) and `environment` pin a value: it can be changed only there.
             * @enum {string}
             */
            kind: "default" | "database" | "file" | "environment";
            /** @description The environment variable that sets it. */
            variable: string | null;
            /** @description The line of config.yaml. */
            line: number | null;
            /** @description When it was set in the database. */
            set_at: string | null;
            /** @description The id of the person who has set it. */
            set_by: string | null;
        };
        /** @description A setting that exists, or all settings of one kind, with what a form needs. */
        SettingTemplateJson: {
            /** @example providers.<name>.api_key */
            key: string;
            /** @description text, long_text, url, number, integer, boolean, choice, timezone, model or image. `adapter`: the form of its platform describes it. */
            kind: string;
            is_list: boolean;
            /** @description Null is a valid value. */
            is_optional: boolean;
            choices: string[];
            minimum: number | null;
            maximum: number | null;
            /** @description A regular expression for the whole text. */
            pattern: string | null;
            /** @description The valid values, in words. */
            allowed: string;
            default: unknown;
            is_secret: boolean;
            /** @description A change applies after the server was started again. */
            needs_restart: boolean;
            /** @description It starts a program, so it can be changed only on the server itself. */
            is_terminal_only: boolean;
            /** @description Why it can be set only in config.yaml or the environment. */
            unstorable_reason: string | null;
            help: string;
        };
        /** @description A change in the history. */
        SettingsChangeJson: {
            number: number;
            /** Format: date-time */
            changed_at: string;
            person_id: string | null;
            person_name: string | null;
            /** @enum {string} */
            origin: "page" | "terminal";
            /** @description The change that this one has undone. */
            undoes: number | null;
            items: components["schemas"]["ChangeItemJson"][];
        };
        /** @description The settings after a change. They are in force on this server now, and on others within a second. */
        SettingsChangedJson: {
            version: number;
            /** @description The number of the change in the history; null if nothing was different. */
            change: number | null;
            changed: string[];
            pending_restart: string[];
        };
        /** @description Changes, newest first. */
        SettingsHistoryJson: {
            changes: components["schemas"]["SettingsChangeJson"][];
            /** @description Pass it as `before` to get older changes; null on the last page. */
            next_cursor: number | null;
        };
        /** @description Changes of settings: all of them are stored, or none. */
        SettingsIn: {
            /**
             * @description Values by key. A section can be set as a whole: its keys are set.
             * @example {
             *       "providers.openai.api_key": "sk-…",
             *       "turns.max_running": 4
             *     }
             */
            set?: {
                [key: string]: unknown;
            };
            /** @description Keys, or sections with all their keys. */
            unset?: string[];
            /** @description Refuse the change (409) if the settings have another version by now. */
            expected_version?: number | null;
        };
        /** @description All settings. */
        SettingsJson: {
            /** @description Pass it as `expected_version`, so that no change of another person is lost. */
            version: number;
            settings: components["schemas"]["SettingJson"][];
            templates: components["schemas"]["SettingTemplateJson"][];
            platforms: components["schemas"]["PlatformFormJson"][];
            providers: components["schemas"]["ProviderPresetJson"][];
            names: components["schemas"]["SettingNamesJson"];
            /** @description Stored values that can't be used, and what to do. */
            problems: components["schemas"]["SettingProblemJson"][];
            /** @description Settings that were changed and apply after a restart. */
            pending_restart: string[];
        };
        /**
         * @description A step of setting up the server that the page offers to owners.
         * @enum {string}
         */
        SetupStep: "model" | "platform";
        /** @description A step of setting up the server, to skip it or to offer it again. */
        SetupStepIn: {
            step: components["schemas"]["SetupStep"];
            skipped: boolean;
        };
        /** @description When a link expires. */
        ShareExpiryIn: {
            /** @description null: never. */
            expires_at: string | null;
        };
        /** @description A shared copy of a conversation. */
        ShareJson: {
            id: string;
            session_id: string;
            /** @description The person who shares it. */
            person: components["schemas"]["NamedPersonJson"];
            title: string | null;
            message_count: number;
            /** Format: date-time */
            created_at: string;
            /** @description From then on the link says that it has expired; null: never. */
            expires_at: string | null;
            /** @description Opens the copy. */
            secret: string;
            /** @description The path of the page that shows it. The secret comes after `#`, which browsers do not send to any server. */
            path: string;
        };
        /** @description A conversation as it was when it was shared, without ids, names of other people, tool calls and files. */
        SharedConversationJson: {
            title: string | null;
            /** Format: date-time */
            shared_at: string;
            messages: components["schemas"]["SharedMessageJson"][];
        };
        /** @description A message in a shared conversation. */
        SharedMessageJson: {
            /** @enum {string} */
            role: "assistant" | "user";
            /** @description The name of the person who shares it; for others `Person`, with a number if there are several; null for the agent. */
            name: string | null;
            text: string;
        };
        /** @description Shares, newest first. */
        SharesJson: {
            shares: components["schemas"]["ShareJson"][];
            /** @description Pass this as `cursor` to get the next page; null on the last page. */
            next_cursor: string | null;
            /** @description After how many days a new link expires by default (`web.shared_link_days`); null: never. */
            default_days: number | null;
        };
        /** @description The person who is signed in now. */
        SignInJson: {
            person: components["schemas"]["PersonJson"];
        };
        /** @description A link that signs a person in once. It is shown only here. */
        SignInLinkJson: {
            /** @description The secret comes after `#`, which browsers do not send to any server. */
            url: string;
            /** Format: date-time */
            expires_at: string;
            /** @description Whether it works only on the machine of the server. */
            is_local_only: boolean;
        };
        /** @description The ways in which a person can sign in, besides with a link. */
        SignInMethodsJson: {
            has_password: boolean;
            passkey_count: number;
        };
        /** @description The features for speech that this server has. */
        SpeechJson: {
            can_transcribe: boolean;
            can_speak: boolean;
            /** @description How long a recording may be. */
            max_seconds: number;
            /** @description A model or a program; null for everyone but owners. */
            transcription_engine: string | null;
            /** @description The same, for reading aloud. */
            speaking_engine: string | null;
            /** @description Settings that don't work; empty for everyone but owners. */
            problems: string[];
        };
        /** @description Options for stopping the answer. */
        StopIn: {
            /**
             * @description Also clear the queue.
             * @default false
             */
            clear_queue?: boolean;
            key?: string | null;
        };
        /** @description The space that your files take. Equal files are stored, and counted, once. */
        StorageJson: {
            used_bytes: number;
            limit_bytes: number;
            file_count: number;
        };
        /** @description Options of a stream. */
        StreamOptions: {
            /** @default false */
            include_usage?: boolean;
        };
        /** @description A target that nothing could be sent to. */
        TargetErrorJson: {
            target: string;
            error: string;
        };
        /** @description One message of a temporary conversation. */
        TemporaryMessageIn: {
            /** @enum {string} */
            role: "user" | "assistant";
            content: string;
            /**
             * @description For an answer: it was stopped before it was complete.
             * @default false
             */
            interrupted?: boolean;
        };
        /** @description A temporary conversation, whose last message is to be answered. */
        TemporaryQuestionIn: {
            messages: components["schemas"]["TemporaryMessageIn"][];
            /** @description None: that of the profile, or the default. */
            model?: string | null;
            profile?: string | null;
            personality?: string | null;
        };
        /** @description An API token, without its secret. */
        TokenJson: {
            id: string;
            name: string;
            scopes: components["schemas"]["Scope"][];
            /** Format: date-time */
            created_at: string;
            last_used_at: string | null;
            expires_at: string | null;
        };
        /** @description Your API tokens, newest first. */
        TokensJson: {
            tokens: components["schemas"]["TokenJson"][];
        };
        /** @description A tool. */
        ToolJson: {
            name: string;
            description: string;
            /** @description Why the agent can't use it; null if it can. */
            problem: string | null;
        };
        /** @description A group of tools. */
        ToolsetJson: {
            /**
             * @description `history`, `memory`, or `mcp:` with the name of a server.
             * @example memory
             */
            name: string;
            description: string;
            /** @description False if the toolset is turned off in this conversation. */
            enabled: boolean;
            /** @description Empty while the toolset's server cannot be reached. */
            tools: components["schemas"]["ToolJson"][];
        };
        /** @description The toolsets of a conversation. */
        ToolsetsJson: {
            toolsets: components["schemas"]["ToolsetJson"][];
        };
        /** @description The words of a recording. */
        TranscriptJson: {
            text: string;
        };
        /** @description A message to a chat platform that failed or may not have arrived, and that a person has to decide about. */
        UndeliveredJson: {
            id: string;
            /** @description The conversation; null for a notice outside of conversations. */
            session_id: string | null;
            /** @description The title of the conversation. */
            title: string | null;
            /** @enum {string} */
            kind: "answer" | "notice";
            platform: string;
            /** @description Its name in the settings; empty for the only one. */
            account: string;
            /** @description The chat, such as `telegram:42`. */
            target: string;
            /** @enum {string} */
            state: "uncertain" | "failed";
            /** @description Why it failed, or why its status is unknown. */
            error: string | null;
            /** Format: date-time */
            created_at: string;
            /**
             * Format: date-time
             * @description When it failed, or its status became unknown.
             */
            ended_at: string;
        };
        /** @description A page of undelivered messages, the last one first. */
        UndeliveredPageJson: {
            deliveries: components["schemas"]["UndeliveredJson"][];
            /** @description Pass this as `cursor` to get the next page; null if there is none. */
            next_cursor: string | null;
        };
        /** @description The change to undo. */
        UndoChangeIn: {
            change: number;
            expected_version?: number | null;
        };
        /** @description The number of turns to undo. */
        UndoIn: {
            /** @default 1 */
            turns?: number;
            key?: string | null;
        };
        /** @description A chat account to take out of a person. */
        UnlinkIn: {
            platform: string;
            account: string;
        };
        /** @description The changes in the running version. */
        UpdateNotesJson: {
            version: string;
            /** @description Markdown; empty if there are no notes. */
            text: string;
        };
        /**
         * @description By what a usage report groups the tokens and cost of a period.
         * @enum {string}
         */
        UsageGrouping: "day" | "model" | "platform" | "person" | "session";
        /** @description Usage by group, and in total. */
        UsageReportJson: {
            rows: components["schemas"]["UsageRowJson"][];
            total: components["schemas"]["UsageRowJson"];
        };
        /** @description The usage of one group. */
        UsageRowJson: {
            input_tokens: number;
            output_tokens: number;
            cache_read_tokens: number;
            cache_write_tokens: number;
            reasoning_tokens: number;
            /** @description The cost in US dollars; null if it is unknown. */
            cost_usd: string | null;
            /** @description Turns whose cost is unknown and not part of `cost_usd`. */
            unpriced_turns: number;
            /** @description A day, a model, a platform, or the id of a person or conversation; null for usage without one. */
            group: string | null;
            label: string;
            turns: number;
        };
        /** @description A budget that you share with others and that is used up. What others have spent is not shown. */
        UsedUpBudgetJson: {
            scope: components["schemas"]["BudgetScope"];
            /** @description The id of a person or job, or the name of a profile; empty for all together, or each of them. */
            subject: string;
            period: components["schemas"]["BudgetPeriod"];
            /** Format: date-time */
            resets_at: string;
            /** @description The time zone in which days and months begin. */
            timezone: string;
        };
        /** @description The version of a message that is shown. A version is a message with everything that followed it. */
        VersionJson: {
            /** @description Of the version that is shown, from 1. */
            number: number;
            /** @description How many versions there are. */
            count: number;
            /** @description The message was edited; otherwise only its answer was regenerated. */
            has_edits: boolean;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    list_sign_in_methods: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServerSignInMethodsJson"];
                };
            };
        };
    };
    sign_in_by_link: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LinkSignInIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignInJson"];
                };
            };
        };
    };
    sign_in_by_password: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PasswordSignInIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignInJson"];
                };
            };
        };
    };
    get_passkey_sign_in_options: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    sign_in_by_passkey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PasskeySignInIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignInJson"];
                };
            };
        };
    };
    sign_out: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    sign_out_everywhere: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    get_me: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MeJson"];
                };
            };
        };
    };
    update_me: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MyAccountIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PersonJson"];
                };
            };
        };
    };
    finish_welcome: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    set_step_skipped: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SetupStepIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    export_my_data: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/zip": string;
                };
            };
        };
    };
    get_my_storage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StorageJson"];
                };
            };
        };
    };
    set_my_password: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewPasswordIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    list_my_passkeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PasskeysJson"];
                };
            };
        };
    };
    add_my_passkey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewPasskeyIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PasskeyJson"];
                };
            };
        };
    };
    get_passkey_registration_options: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    remove_my_passkey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                passkey_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    list_my_devices: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DevicesJson"];
                };
            };
        };
    };
    sign_out_device: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                device_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    list_my_tokens: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokensJson"];
                };
            };
        };
    };
    create_token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewTokenIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewTokenJson"];
                };
            };
        };
    };
    revoke_token: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    list_links: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LinksJson"];
                };
            };
        };
    };
    use_link_code: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LinkCodeIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LinkJson"];
                };
            };
        };
    };
    create_link_code: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LinkCodeJson"];
                };
            };
        };
    };
    answer_link: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LinkAnswerIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LinkJson"];
                };
            };
        };
    };
    unlink_own_account: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OwnAccountIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    get_push_status: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PushStatusJson"];
                };
            };
        };
    };
    subscribe_to_push: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PushSubscriptionIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    unsubscribe_from_push: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    send_test_push: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    list_people: {
        parameters: {
            query?: {
                role?: components["schemas"]["Role"] | null;
                cursor?: string | null;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PeopleJson"];
                };
            };
        };
    };
    create_person: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewPersonIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvitationJson"];
                };
            };
        };
    };
    list_pairing_requests: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PairingRequestsJson"];
                };
            };
        };
    };
    approve_pairing_request: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                request_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApprovalIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemberJson"];
                };
            };
        };
    };
    deny_pairing_request: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                request_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    unlink_account: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                person_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UnlinkIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemberJson"];
                };
            };
        };
    };
    remove_person: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                person_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    update_person: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                person_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PersonChangesIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemberJson"];
                };
            };
        };
    };
    preview_erasure: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                person_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErasurePreviewJson"];
                };
            };
        };
    };
    erase_person: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                person_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ErasureIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErasureJson"];
                };
            };
        };
    };
    create_sign_in_link: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                person_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvitationJson"];
                };
            };
        };
    };
    list_sessions: {
        parameters: {
            query?: {
                state?: "active" | "archived" | "pinned";
                /** @description Only those that the reset policy has ended, archived or not; `state` does not matter. */
                expired?: boolean;
                /** @description One of your projects, by id or name; `none`: only those in no project. */
                project?: string | null;
                /** @description The platform they come from. */
                platform?: string | null;
                /** @description Leave out those that come from this platform; repeat it for several. */
                without_platform?: string[] | null;
                /** @description The profile chosen in them; `default`: those where none was chosen. */
                profile?: string | null;
                /** @description The id of a person who takes part. */
                person_id?: string | null;
                /** @description Only those last active at this time or later. */
                after?: string | null;
                /** @description Only those last active before this time. */
                before?: string | null;
                /** @description Words, or beginnings of words, in the title; -word excludes a word. */
                title?: string | null;
                /** @description Words in the title, the preview or the name of the chat; -word excludes a word. */
                query?: string | null;
                /** @description The cursor of an earlier page. */
                cursor?: string | null;
                limit?: number;
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConversationsJson"];
                };
            };
        };
    };
    create_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSessionIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConversationJson"];
                };
            };
        };
    };
    get_session: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConversationJson"];
                };
            };
        };
    };
    delete_session: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    update_session: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SessionChangesIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConversationJson"];
                };
            };
        };
    };
    list_messages: {
        parameters: {
            query?: {
                before?: number | null;
                after?: number | null;
                around?: number | null;
                limit?: number;
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LogPageJson"];
                };
            };
        };
    };
    send_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MessageIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceiptJson"];
                };
            };
        };
    };
    list_events: {
        parameters: {
            query?: {
                after?: number;
                limit?: number;
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LogPageJson"];
                };
            };
        };
    };
    list_toolsets: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolsetsJson"];
                };
            };
        };
    };
    mark_read: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MarkReadIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadPositionJson"];
                };
            };
        };
    };
    export_session: {
        parameters: {
            query?: {
                format?: "json" | "jsonl" | "markdown" | "html";
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The conversation as a file. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                    "application/jsonl": string;
                    "text/markdown": string;
                    "text/html": string;
                };
            };
        };
    };
    stop_answer: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StopIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceiptJson"];
                };
            };
        };
    };
    undo_turns: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UndoIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceiptJson"];
                };
            };
        };
    };
    redo_turns: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ActionIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceiptJson"];
                };
            };
        };
    };
    retry_turn: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RetryIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceiptJson"];
                };
            };
        };
    };
    choose_version: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChooseVersionIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceiptJson"];
                };
            };
        };
    };
    restore_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ActionIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceiptJson"];
                };
            };
        };
    };
    compact_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CompactIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceiptJson"];
                };
            };
        };
    };
    fork_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ForkIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConversationJson"];
                };
            };
        };
    };
    edit_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EditJson"];
                };
            };
        };
    };
    list_deliveries: {
        parameters: {
            query?: {
                /** @description The cursor of an earlier page. */
                cursor?: string | null;
                limit?: number;
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveriesJson"];
                };
            };
        };
    };
    retry_delivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
                /** @description The id of a delivery. */
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryJson"];
                };
            };
        };
    };
    list_undelivered: {
        parameters: {
            query?: {
                /** @description Only these. */
                state?: ("uncertain" | "failed") | null;
                /** @description Only of this platform. */
                platform?: string | null;
                /** @description Only to a chat, such as `telegram:42`. */
                target?: string | null;
                /** @description Only what ended after this; by default, 30 days ago. */
                after?: string | null;
                /** @description Only what ended before this. */
                before?: string | null;
                /** @description The cursor of an earlier page. */
                cursor?: string | null;
                limit?: number;
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UndeliveredPageJson"];
                };
            };
        };
    };
    resolve_undelivered: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResolutionIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResolvedJson"];
                };
            };
        };
    };
    answer_temporary_question: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TemporaryQuestionIn"];
            };
        };
        responses: {
            /** @description Server-sent events: `text`, `reasoning`, `notice`, and `end` as the last one. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": {
                        /** @enum {string} */
                        event?: "text" | "reasoning" | "notice" | "end";
                        /** @description JSON. */
                        data?: string;
                    };
                };
            };
        };
    };
    search_messages: {
        parameters: {
            query: {
                /** @description Words, "exact phrases", beginnings* and -exclusions. */
                query: string;
                /** @description The last word is still being typed: also find words that begin with it. */
                typing?: boolean;
                /** @description The id of a conversation to search in. */
                session_id?: string | null;
                /** @description Words and "exact phrases" that must not occur. */
                without?: string | null;
                /** @description The platform that the conversation comes from. */
                platform?: string | null;
                /** @description Who wrote the message. */
                role?: ("user" | "assistant" | "tool") | null;
                /** @description Only messages from this time or later. */
                after?: string | null;
                /** @description Only messages from before this time. */
                before?: string | null;
                /** @description One of your projects, by id or name. */
                project?: string | null;
                /** @description Who wrote the message: a person in your conversations, by id or name. */
                person?: string | null;
                /** @description Whether to search in archived conversations. */
                archived?: "only" | "without" | "both";
                /** @description The cursor of an earlier page. */
                cursor?: string | null;
                limit?: number;
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchResultsJson"];
                };
            };
        };
    };
    list_search_people: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchPeopleJson"];
                };
            };
        };
    };
    list_projects: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProjectsJson"];
                };
            };
        };
    };
    create_project: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewProjectIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProjectJson"];
                };
            };
        };
    };
    delete_project: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a project. */
                project_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    update_project: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a project. */
                project_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProjectChangesIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProjectJson"];
                };
            };
        };
    };
    list_saved_prompts: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedPromptsJson"];
                };
            };
        };
    };
    create_saved_prompt: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSavedPromptIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedPromptJson"];
                };
            };
        };
    };
    delete_saved_prompt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a saved prompt. */
                prompt_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    update_saved_prompt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a saved prompt. */
                prompt_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SavedPromptChangesIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedPromptJson"];
                };
            };
        };
    };
    list_memories: {
        parameters: {
            query?: {
                /** @description Words or beginnings of words to search for. */
                query?: string;
                /** @description Only memories of this origin. */
                origin?: components["schemas"]["MemoryOrigin"] | null;
                cursor?: string | null;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoriesJson"];
                };
            };
        };
    };
    create_memory: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MemoryIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryJson"];
                };
            };
        };
    };
    delete_memory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a memory. */
                memory_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    update_memory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a memory. */
                memory_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MemoryIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryJson"];
                };
            };
        };
    };
    list_jobs: {
        parameters: {
            query?: {
                cursor?: string | null;
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobsJson"];
                };
            };
        };
    };
    create_job: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JobIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobDetailsJson"];
                };
            };
        };
    };
    preview_job: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JobPreviewIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobPreviewJson"];
                };
            };
        };
    };
    get_job_options: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobOptionsJson"];
                };
            };
        };
    };
    get_job: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a job. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobDetailsJson"];
                };
            };
        };
    };
    delete_job: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a job. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    update_job: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a job. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JobFieldsIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobDetailsJson"];
                };
            };
        };
    };
    pause_job: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a job. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobDetailsJson"];
                };
            };
        };
    };
    resume_job: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a job. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobDetailsJson"];
                };
            };
        };
    };
    confirm_job: {
        parameters: {
            query?: {
                asked_at?: string | null;
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a job. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobDetailsJson"];
                };
            };
        };
    };
    reject_job: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a job. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    run_job: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a job. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ActionIn"] | null;
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobRunJson"];
                };
            };
        };
    };
    list_job_runs: {
        parameters: {
            query?: {
                before?: string | null;
                limit?: number;
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a job. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobRunsJson"];
                };
            };
        };
    };
    list_models: {
        parameters: {
            query?: {
                /** @description The name of another model to include. */
                include?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelsJson"];
                };
            };
        };
    };
    list_offered_models: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AllOfferedModelsJson"];
                };
            };
        };
    };
    list_profiles: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProfilesJson"];
                };
            };
        };
    };
    list_policies: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PoliciesJson"];
                };
            };
        };
    };
    get_retention: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RetentionJson"];
                };
            };
        };
    };
    prune_sessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PruneIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PruneJson"];
                };
            };
        };
    };
    rewrite_database_file: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RewrittenFileJson"];
                };
            };
        };
    };
    get_settings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SettingsJson"];
                };
            };
        };
    };
    change_settings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SettingsIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SettingsChangedJson"];
                };
            };
        };
    };
    list_settings_changes: {
        parameters: {
            query?: {
                before?: number | null;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SettingsHistoryJson"];
                };
            };
        };
    };
    undo_settings_change: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UndoChangeIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SettingsChangedJson"];
                };
            };
        };
    };
    run_provider_test: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProviderTestIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProviderTestJson"];
                };
            };
        };
    };
    list_available_models: {
        parameters: {
            query: {
                provider: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AvailableModelsJson"];
                };
            };
        };
    };
    run_account_test: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                platform: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AccountTestIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccountTestJson"];
                };
            };
        };
    };
    list_commands: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CommandsJson"];
                };
            };
        };
    };
    run_command: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CommandIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceiptJson"];
                };
            };
        };
    };
    get_usage_report: {
        parameters: {
            query?: {
                group_by?: components["schemas"]["UsageGrouping"];
                /** @description The first day, in UTC. */
                from?: string | null;
                /** @description The last day, in UTC. */
                to?: string | null;
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsageReportJson"];
                };
            };
        };
    };
    list_budgets: {
        parameters: {
            query?: {
                session?: string | null;
                cursor?: string | null;
                /** @description How many people, jobs and profiles. */
                limit?: number;
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BudgetsJson"];
                };
            };
        };
    };
    set_budget_limits: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                scope: components["schemas"]["BudgetScope"];
                /** @description An id, or the name of a profile; `*` for all together (`all`), or each of them. */
                subject: string;
                period: components["schemas"]["BudgetPeriod"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LimitsIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BudgetJson"];
                };
            };
        };
    };
    clear_budget_limits: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                scope: components["schemas"]["BudgetScope"];
                /** @description An id, or the name of a profile; `*` for all together (`all`), or each of them. */
                subject: string;
                period: components["schemas"]["BudgetPeriod"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    open_live_stream: {
        parameters: {
            query?: {
                /** @description A conversation to follow: its id, optionally with a colon and the number of the last event that you have. */
                follow?: string[] | null;
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: {
                /** @description The last `id:` of an earlier stream; empty if there was none and you want a `lists_changed` as soon as no change is missed any more. */
                "last-event-id"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Server-sent events: `session`, `session_removed`, `event`, `turn`, `draft`, `notice`, `delivery`, `lists_changed`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    list_imports: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportsJson"];
                };
            };
        };
    };
    upload_import: {
        parameters: {
            query?: {
                /** @description The name of the file, such as `export.zip`. */
                name?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportJson"];
                };
            };
        };
    };
    get_import: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of an import. */
                import_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportJson"];
                };
            };
        };
    };
    delete_import: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of an import. */
                import_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    start_import: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of an import. */
                import_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportJson"];
                };
            };
        };
    };
    upload_attachment: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "multipart/form-data": {
                    /** Format: binary */
                    file: string;
                };
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AttachmentJson"];
                };
            };
        };
    };
    download_attachment: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                attachment_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
        };
    };
    get_speech: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SpeechJson"];
                };
            };
        };
    };
    transcribe_attachment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                attachment_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TranscriptJson"];
                };
            };
        };
    };
    speak_answer: {
        parameters: {
            query?: {
                /** @description Which piece, from 0. */
                piece?: number;
            };
            header?: never;
            path: {
                /** @description The id of a conversation. */
                session_id: string;
                seq: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    /** @description How many pieces the answer has. */
                    "Palaver-Pieces"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "audio/*": string;
                };
            };
        };
    };
    create_share: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NewShareIn"] | null;
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ShareJson"];
                };
            };
        };
    };
    list_shares: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The cursor of an earlier page. */
                cursor?: string | null;
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SharesJson"];
                };
            };
        };
    };
    delete_share: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                share_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    change_share: {
        parameters: {
            query?: {
                /** @description Include everyone's conversations; only for owners. */
                all?: boolean;
            };
            header?: never;
            path: {
                share_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ShareExpiryIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ShareJson"];
                };
            };
        };
    };
    get_shared_conversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                secret: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SharedConversationJson"];
                };
            };
        };
    };
    list_platforms: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlatformsJson"];
                };
            };
        };
    };
    request_test: {
        parameters: {
            query?: {
                /** @description Its name in the settings; empty for the only one. */
                account?: string;
            };
            header?: never;
            path: {
                platform: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlatformAccountJson"];
                };
            };
        };
    };
    list_logs: {
        parameters: {
            query?: {
                /** @description Only this level and above. */
                level?: "debug" | "info" | "warning" | "error" | "critical";
                /** @description Only lines that contain this text. */
                text?: string;
                /** @description The cursor of an earlier request. */
                cursor?: string | null;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LogsJson"];
                };
            };
        };
    };
    get_health_details: {
        parameters: {
            query?: {
                /** @description Also ask the model one short question, which costs a little. */
                asks_model?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HealthDetailsJson"];
                };
            };
        };
    };
    get_update_notes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UpdateNotesJson"];
                };
            };
        };
    };
}
