import type { PromptRequest } from '../../contracts/index.js';

/** A schema that an answer must satisfy. */
interface RequiredSchema {
  /** The function whose arguments it is for; null: the text of the answer. */
  name: string | null;
  schema: unknown;
  /** Its location in the request, as a JSON pointer. */
  pointer: string;
}

type Request = Pick<PromptRequest, 'tools' | 'tool_choice' | 'response_format'>;
const ANY_OBJECT = { type: 'object' };

/** Returns the schemas of which an answer must satisfy one; none if it may be any text. */
export function requiredSchemas({ tools = [], tool_choice, response_format }: Request): RequiredSchema[] {
  if (response_format?.type === 'json_object')
    return [{ name: null, schema: ANY_OBJECT, pointer: '/response_format' }];
  if (response_format?.type === 'json_schema') {
    const pointer = '/response_format/json_schema/schema';
    return [{ name: null, schema: response_format.json_schema.schema, pointer }];
  }
  const wanted = requiredTool(tool_choice);
  if (wanted === null) return [];
  const called = tools.map(({ function: { name, parameters = {} } }, index) => ({
    name,
    schema: Object.keys(parameters).length === 0 ? ANY_OBJECT : parameters,
    pointer: `/tools/${index}/function/parameters`,
  }));
  return called.filter(({ name }) => wanted.any || name === wanted.name);
}

/** Returns which function an answer must call; null: it need not call any. */
export function requiredTool(
  choice: Request['tool_choice'],
): { any: true } | { any: false; name: string } | null {
  if (choice === 'required') return { any: true };
  return typeof choice === 'object' ? { any: false, name: choice.function.name } : null;
}
