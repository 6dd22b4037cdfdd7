import t from 'tap';
import { OriginInterpreter } from './interpreter.js';
import { ArrayValue, newScope, parseSource } from './library.js';
import { asValue, FieldsValue, originsOf, textOf } from './values.js';

const LOOP = { begin: 100, end: 101 };

/** Renders messages, of which each has an origin for its mark and one for its content. */
function rendered(source: string, contents: readonly string[]): (readonly [string, number])[] {
  const scope = newScope();
  const messages = contents.map(
    (content, index) => new FieldsValue(new Map([['content', textOf(content, 10 + index)]]), 1, 20 + index),
  );
  scope.setVariable('messages', new ArrayValue(messages));
  scope.setVariable('number', asValue(5, 1));
  const { runs } = originsOf(new OriginInterpreter(scope, LOOP).run(parseSource(source)));
  return runs.map(({ text, origin }) => [text, origin]);
}

const ANGLE = [
  ['<', 0],
  ['x', 10],
  ['>', 0],
];

t.test('blocks, variables, macros and filters keep the origins of texts', async (t) => {
  t.same(rendered('{{ "a" + messages[0].content ~ number + "b" }}', ['x']), [
    ['a', 0],
    ['x', 10],
    ['5b', 0],
  ]);
  for (const source of [
    '{% set a %}<{{ messages[0].content }}>{% endset %}{{ a }}',
    '{% macro f(a) %}<{{ a }}>{% endmacro %}{{ f(messages[0].content) }}',
    '{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}{{ messages[0].content }}{% endcall %}',
    '{% filter trim %} <{{ messages[0].content }}> {% endfilter %}',
    '{% if number %}<{{ messages[0].content }}{% endif %}>',
  ]) {
    const runs = rendered(source, ['x']).filter(([text]) => text !== '');
    t.same(runs, ANGLE, source);
  }
});

t.test('a loop over messages marks its begin and end', async (t) => {
  t.same(rendered('{% for m in messages %}-{{ m.content }}{% endfor %}', ['x', '']), [
    ['', LOOP.begin],
    ['', 20],
    ['-', 0],
    ['x', 10],
    ['', 21],
    ['-', 0],
    ['', 11],
    ['', LOOP.end],
  ]);
  t.same(rendered('{% for m in messages %} {% endfor %}', ['x']), [[' ', 0]], 'it writes no text');
});

t.test('loops skip, end, filter and unpack as in Jinja', async (t) => {
  const text = (source: string) =>
    rendered(source, ['x', 'y', 'z'])
      .map(([text]) => text)
      .join('');
  const skip = '{% if m.content == "y" %}{% continue %}{% endif %}';
  t.equal(text(`{% for m in messages %}${skip}{{ loop.index }}{{ m.content }}{% endfor %}`), '1x3z');
  t.equal(
    text(`{% for m in messages %}${skip.replace('continue', 'break')}{{ m.content }}{% endfor %}`),
    'x',
  );
  t.equal(
    text(
      '{% for m in messages if m.content != "x" %}{{ loop.revindex }}{{ loop.previtem.content }}{% endfor %}',
    ),
    '21y',
  );
  t.equal(text('{% for k, v in messages[0].items() %}{{ k }}={{ v }}{% endfor %}'), 'content=x');
  t.equal(text('{% for m in nothing %}a{% else %}none{% endfor %}'), 'none');
  for (const [source, message] of [
    ['{% for m in number %}{% endfor %}', /got IntegerValue/],
    ['{% for a, b in messages %}{% endfor %}', /Cannot unpack/],
    ['{{ number + nothing }}', /undefined/],
  ] as const)
    t.throws(() => text(source), { message }, source);
});
