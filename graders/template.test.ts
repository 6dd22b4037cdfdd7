import t from 'tap';
import type { GradedItem, GraderFault } from './grader.js';
import { MAX_TEXT, MAX_VARIABLES, Rendering, templateProblem } from './template.js';

const graded = {
  item: { answer: '42', parts: [{ name: 'a' }, 7], none: null, 'a-b': true, ümlaut: 'ü' },
  sample: { output_text: '{"x": {"y": [1, 2]}}' },
};
const rendered = (template: string, given: GradedItem) => new Rendering(given).render(template);

t.test('texts', (t) => {
  const expected: [string, string][] = [
    ['plain {braces}', 'plain {braces}'],
    ['{{item.answer}}', '42'],
    ['{{ item.answer }}!', '42!'],
    ['{{item.parts[0].name}}{{item.parts[1]}}', 'a7'],
    ['{{item.parts}}', '[{"name":"a"},7]'],
    ['{{item.none}} {{item.a-b}} {{item.ümlaut}}', 'null true ü'],
    ['{{sample.output_text}}', graded.sample.output_text],
    ['{{sample.output_json.x.y[1]}}', '2'],
    ['{{sample.output_json}}', '{"x":{"y":[1,2]}}'],
  ];
  for (const [template, text] of expected) {
    t.equal(templateProblem(template), null, template);
    t.equal(rendered(template, graded), text, template);
  }
  t.end();
});

t.test('values are not templates again, nor patterns of a replacement', (t) => {
  const item = { a: '{{item.b}} $& $1', b: 'no' };
  t.equal(rendered('<{{item.a}}>', { ...graded, item }), '<{{item.b}} $& $1>');
  t.end();
});

t.test('templates that are refused', (t) => {
  for (const template of ['{{}}', '{{answer}}', '{{item}}', '{{item.a b}}', '{{env.PATH}}', '{{item.a[x]}}'])
    t.match(templateProblem(template), /is no variable/, template);
  t.match(templateProblem('{{sample.choices}}'), /sample has output_text and output_json/);
  t.match(templateProblem('{{sample.output_text.x}}'), /output_text is a text/);
  t.equal(templateProblem('{{item.a}}'.repeat(MAX_VARIABLES)), null);
  t.match(templateProblem('{{item.a}}'.repeat(MAX_VARIABLES + 1)), /at most 256 variables; this one has 257/);
  t.end();
});

t.test('variables without a value', (t) => {
  const codeOf = (template: string, sample = graded.sample) => {
    try {
      return rendered(template, { ...graded, sample });
    } catch (error) {
      return (error as GraderFault).code;
    }
  };
  for (const path of ['item.other', 'item.answer.length', 'item.parts[2]', 'item.none.a', 'item.__proto__'])
    t.equal(codeOf(`{{${path}}}`), 'template_variable_missing', path);
  t.equal(codeOf('{{sample.output_json.z}}'), 'template_variable_missing');
  t.equal(codeOf('{{sample.output_json.z}}', { output_text: '{' }), 'sample_not_json');
  const long = { output_text: 'a'.repeat(MAX_TEXT) };
  t.equal(codeOf('{{sample.output_text}}', long), long.output_text);
  t.equal(codeOf('{{sample.output_text}}{{item.answer}}', long), 'template_text_too_long');
  t.end();
});

t.test('all templates of a grade parse the answer once', (t) => {
  const calls = t.capture(JSON, 'parse', JSON.parse);
  const rendering = new Rendering(graded);
  t.equal(rendering.render('{{sample.output_json.x.y[0]}} {{sample.output_json.x.y[1]}}'), '1 2');
  t.equal(rendering.render('{{sample.output_json.x.y[1]}}'), '2');
  t.equal(calls().length, 1);
  t.end();
});
