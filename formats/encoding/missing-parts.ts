/** Parts of a chat that its rendered text does not have. */
import { type JsonlMessage, LEARNED_ROLE } from '../../contracts/jsonl/fields.js';
import type { JsonlChat } from '../../contracts/jsonl/line.js';
import { DATA, type MessagePart, REASONING_FIELDS } from './chat-origins.js';
import type { Rendering } from './learned-parts.js';

/** Part of a chat that some templates leave out. */
export type MissingPart = 'system' | 'reasoning';

/** OpenAI's newer name of the system's messages. Few templates know it. */
const DEVELOPER_ROLE = 'developer';
const SYSTEM_ROLE = 'system';

/** Returns the fields of a message that a template gets. */
export function templateFields({ weight: _, ...message }: JsonlMessage): JsonlMessage {
  return message.role === DEVELOPER_ROLE ? { ...message, role: SYSTEM_ROLE } : message;
}

/** Part of a chat that the text does not have, and the chat without this part. */
interface Unrendered {
  what: string;
  /** Null: a template must have this part. */
  kind: MissingPart | null;
  without: JsonlChat;
}

/** Roles that every template has. */
const KNOWN_ROLES: readonly string[] = ['user', LEARNED_ROLE];

/** Returns the parts of a chat of which the text has nothing. A template may still have used them. */
export function* unrendered(chat: JsonlChat, rendering: Rendering): Generator<Unrendered> {
  const { messages, tools } = chat;
  if (tools !== null && tools.length > 0 && !rendering.has((origin) => origin === DATA))
    yield { what: 'the tools', kind: null, without: { ...chat, tools: null } };
  const last = messages.findLastIndex(({ role }) => role === LEARNED_ROLE);
  for (const [index, message] of messages.entries()) {
    const changed = (fields: Partial<JsonlMessage>): JsonlChat => ({
      ...chat,
      messages: messages.with(index, { ...message, ...fields }),
    });
    const lacks = (part: MessagePart) =>
      rendering.partsOf(index, part).every(({ begin, end }) => begin === end);
    const what = `message ${index} (role ${message.role})`;
    if ((message.tool_calls ?? []).length > 0 && lacks('calls'))
      yield { what: `the tool_calls of ${what}`, kind: null, without: changed({ tool_calls: undefined }) };
    if (message.content?.trim() && !KNOWN_ROLES.includes(message.role) && lacks('content')) {
      const kind = templateFields(message).role === SYSTEM_ROLE ? 'system' : null;
      yield { what, kind, without: changed({ content: 'a' }) };
    }
    // Many templates leave out the reasoning of earlier turns.
    const reasons = REASONING_FIELDS.filter((name) => message[name]);
    if (index === last && reasons.length > 0 && lacks('reasoning')) {
      const absent = Object.fromEntries(reasons.map((name) => [name, undefined]));
      yield { what: `the reasoning of ${what}`, kind: 'reasoning', without: changed(absent) };
    }
  }
}
