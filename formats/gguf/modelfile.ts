/**
 * The `Modelfile` of Ollama beside a GGUF file. Ollama renders chats with a template of Go, not with the one inside the
 * file. It stops at the texts of `PARAMETER stop`, and adds the begin token that the file asks for.
 */
import type { JsonlMessage } from '../../contracts/jsonl/fields.js';
import { orNull } from './or-null.js';
import type { GgufTokenizer } from './tokenizer.js';

/** Text before and after the content of a role's message. */
interface Turn {
  before: string;
  after: string;
}

/** A template that writes one message after the other. */
interface LinearTemplate {
  /** A template may refuse system messages. */
  turns: Readonly<Record<Exclude<Role, 'system'>, Turn> & Record<'system', Turn | null>>;
  /** Text at the beginning of a chat without a system message. */
  withoutSystem: string;
  /** Text that asks for an answer. */
  prompt: string;
}

const ROLES = ['system', 'user', 'assistant'] as const;
type Role = (typeof ROLES)[number];

/** Chats whose rendering confirms a template. */
const CHATS: readonly (readonly Role[])[] = [
  ['user'],
  ['system', 'user'],
  ['user', 'assistant', 'user'],
  ['system', 'user', 'assistant', 'user', 'assistant', 'user'],
];

const NOT_LINEAR = `# The chat template does not write one message after the other, so it has no equal here.
# Ollama needs a TEMPLATE for chats; llama.cpp's server reads the template inside the GGUF file.
`;

export function modelfile(file: string, { stops, beginText, template }: GgufTokenizer): string {
  const linear =
    template && linearTemplate((messages) => template.generationPrompt(messages).text, beginText);
  const lines = [
    `FROM ./${file}\n`,
    ...(linear ? [`TEMPLATE """${goTemplate(linear)}"""\n`] : []),
    ...(template && !linear ? [NOT_LINEAR] : []),
    ...stops.map((stop) => `PARAMETER stop ${JSON.stringify(stop)}\n`),
  ];
  return lines.join('');
}

/**
 * Returns the parts of a chat template, found in renderings of chats with unique contents; null if others are not the
 * sum of these parts.
 * @param render returns the prompt of a chat
 * @param beginText that Ollama adds itself
 */
function linearTemplate(
  render: (messages: JsonlMessage[]) => string,
  beginText: string | null,
): LinearTemplate | null {
  const rendered = (roles: readonly Role[]) => {
    const text = render(roles.map((role, index) => ({ role, content: contentOf(index) })));
    return beginText !== null && text.startsWith(beginText) ? text.slice(beginText.length) : text;
  };
  return orNull(() => {
    const linear = partsOf(rendered);
    const chats = CHATS.filter((roles) => linear.turns.system !== null || roles[0] !== 'system');
    return chats.every((roles) => joined(linear, roles) === rendered(roles)) ? linear : null;
  });
}

const contentOf = (index: number) => `content-${index}-of-the-chat`;
const CONTENT = /content-\d-of-the-chat/;

/**
 * The text between two messages is that after the first and that before the second. Any division of it serves that is
 * the same in every chat, such as the longest end that all texts before a user's message share.
 */
function partsOf(rendered: (roles: readonly Role[]) => string): LinearTemplate {
  const between = (...roles: Role[]) => rendered(roles).split(CONTENT);
  const [begin = '', end = ''] = between('user');
  const [, toAnswer = '', toUser = ''] = between('user', 'assistant', 'user');
  const system = orNull(() => between('system', 'user'));
  const [beforeSystem = '', toFirstUser = toUser] = system ?? [];
  const beforeUser = reversed(common([begin, toUser, toFirstUser].map(reversed)));
  const without = (text: string, ending: string) => text.slice(0, text.length - ending.length);
  const afterAnswer = without(toUser, beforeUser);
  const afterUser = common([end, toAnswer, afterAnswer]);
  return {
    turns: {
      system: system && { before: beforeSystem, after: without(toFirstUser, beforeUser) },
      user: { before: beforeUser, after: afterUser },
      assistant: { before: toAnswer.slice(afterUser.length), after: afterAnswer },
    },
    withoutSystem: without(begin, beforeUser),
    prompt: end.slice(afterUser.length),
  };
}

/** Returns the longest common beginning. */
function common([first = '', ...others]: readonly string[]): string {
  let length = 0;
  while (length < first.length && others.every((other) => other[length] === first[length])) length++;
  return first.slice(0, length);
}

const reversed = (text: string) => Array.from(text).reverse().join('');

function joined({ turns, withoutSystem, prompt }: LinearTemplate, roles: readonly Role[]): string {
  const texts = roles.map((role, index) => {
    const { before = '', after = '' } = turns[role] ?? {};
    return before + contentOf(index) + after;
  });
  return (roles[0] === 'system' ? '' : withoutSystem) + texts.join('') + prompt;
}

/** All texts are literals of Go, so that white space around actions stays. */
function goTemplate({ turns, withoutSystem, prompt }: LinearTemplate): string {
  const roles = ROLES.flatMap((role) => {
    const turn = turns[role];
    return turn === null
      ? []
      : [`if eq .Role "${role}" }}${literal(turn.before)}{{ .Content }}${literal(turn.after)}`];
  });
  const first = literal(withoutSystem);
  const begin =
    first === '' || turns.system === null
      ? first
      : `{{ if ne (index .Messages 0).Role "system" }}${first}{{ end }}`;
  return `${begin}{{ range .Messages }}{{ ${roles.join('{{ else ')}{{ end }}{{ end }}${literal(prompt)}`;
}

function literal(text: string): string {
  return text === '' ? '' : `{{ ${JSON.stringify(text)} }}`;
}
