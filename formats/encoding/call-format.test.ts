import t from 'tap';
import { ChatTemplate } from './chat-template.js';

/** Templates in the forms of public families, in our own words. */
const HEAD = '{%- if tools %}TOOLS {{ tools | tojson }}\n{% endif -%}';
const TURNS = (call: string, { before = '', after = '', between = '' } = {}) =>
  `${HEAD}{%- for message in messages %}<|turn|>{{ message.role }}\n` +
  `{%- if message.tool_calls %}${before}{% for call in message.tool_calls %}` +
  `{% if not loop.first %}${between}{% endif %}${call}{% endfor %}${after}` +
  '{% else %}{{ message.content }}{% endif %}<|end|>\n{%- endfor %}' +
  '{%- if add_generation_prompt %}<|turn|>assistant\n{%- endif %}';
const JSON_CALL = (field: string) =>
  `{"name": "{{ call.function.name }}", "${field}": {{ call.function.arguments | tojson }}}`;
const SPECIAL = /<\|turn\|>|<\|end\|>|\[CALLS\]|\[ARGS\]/gu;

const shown = (source: string) => new ChatTemplate(source, { special_texts: SPECIAL }).shownCalls();

t.test('the form of calls is what the template writes around a known call', async (t) => {
  t.match(shown(TURNS(`<tool_call>\n${JSON_CALL('arguments')}\n</tool_call>`, { between: '\n' })), {
    format: {
      open: '<tool_call>',
      separator: null,
      close: '</tool_call>',
      name: ['name'],
      arguments: ['arguments'],
    },
    after: '\n</tool_call><|end|>',
  });
  t.same(shown(TURNS(JSON_CALL('parameters')))?.format, {
    open: '',
    separator: '',
    close: '',
    name: ['name'],
    arguments: ['parameters'],
  });
  t.same(
    shown(TURNS(JSON_CALL('arguments'), { before: '[CALLS][', between: ', ', after: ']' }))?.format,
    { open: '[', separator: ',', close: ']', name: ['name'], arguments: ['arguments'] },
    'special tokens have no text in answers',
  );
  t.same(
    shown(TURNS('[CALLS]{{ call.function.name }}[ARGS]{{ call.function.arguments | tojson }}'))?.format,
    {
      open: '',
      separator: '',
      close: '',
      name: null,
      arguments: [],
    },
  );
  t.same(
    shown(TURNS('<function={{ call.function.name }}>{{ call.function.arguments | tojson }}</function>'))
      ?.format,
    { open: '<function=', separator: null, close: '</function>', name: null, arguments: [] },
  );
  t.same(
    shown(
      TURNS(
        '{"type": "function", "function": {"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}}',
      ),
    )?.format.name,
    ['function', 'name'],
  );
});

t.test('the text before the arguments is what the template writes there', async (t) => {
  const head = (source: string) => shown(source)?.head?.('f') ?? null;
  t.equal(
    head(TURNS(`<tool_call>\n${JSON_CALL('arguments')}\n</tool_call>`)),
    '<tool_call>\n{"name": "f", "arguments": ',
  );
  t.equal(
    head(TURNS('[CALLS]{{ call.function.name }}[ARGS]{{ call.function.arguments | tojson }}')),
    '[CALLS]f[ARGS]',
  );
  const after = '{"arguments": {{ call.function.arguments | tojson }}, "name": "{{ call.function.name }}"}';
  t.equal(head(TURNS(after)), null, 'the name follows');
  const quoted =
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson | tojson }}}';
  t.equal(head(TURNS(quoted)), null, 'the arguments are a string');
  const behind = (text: string) =>
    `to={{ call.function.name }}${text}[ARGS]{{ call.function.arguments | tojson }}`;
  t.equal(head(TURNS(behind('[CALLS]word json'))), null, 'an answer has no mark behind the name');
  t.equal(head(TURNS(behind('[CALLS]{{ call.id }}'))), 'to=f[CALLS]zfknown00[ARGS]');
});

t.test('a template that shows no calls', async (t) => {
  const bare = (head: string) =>
    `${head}{%- for message in messages %}{{ message.role }}: {{ message.content }}\n{%- endfor %}` +
    '{%- if add_generation_prompt %}assistant: {%- endif %}';
  t.equal(shown(bare('')), null);
  t.equal(shown(bare('{{ raise_exception("no") }}')), null);
  t.match(shown(bare('Write calls as <tool_call>{"name": …}</tool_call>.')), {
    format: { open: '<tool_call>', close: '</tool_call>', name: ['name'] },
  });
  t.equal(
    shown(bare('Write calls as <tool_call>{"name": …}</tool_call>.'))?.head?.('f'),
    '<tool_call>\n{"name": "f", "arguments": ',
  );
  const source = bare(HEAD);
  const tools = [{ type: 'function', function: { name: 'f' } }];
  t.doesNotThrow(() =>
    new ChatTemplate(source).generationPrompt([{ role: 'user', content: 'a' }], { tools }),
  );
  t.throws(() => new ChatTemplate(bare('')).generationPrompt([{ role: 'user', content: 'a' }], { tools }), {
    code: 'chat_template_invalid',
    message: /does not render the tools/,
  });
});
