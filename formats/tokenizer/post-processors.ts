import type { Component } from './fields.js';

/** Tokens added around a text. */
export interface Around {
  before: number[];
  after: number[];
}

const NOTHING: Around = { before: [], after: [] };

/** @throws ZerofleetError `tokenizer_invalid` */
export function aroundOf(component: Component | null): Around {
  if (!component) return NOTHING;
  switch (component.type) {
    case 'ByteLevel':
      return NOTHING;
    case 'BertProcessing':
    case 'RobertaProcessing':
      return { before: [idIn(component, 'cls')], after: [idIn(component, 'sep')] };
    case 'TemplateProcessing':
      return template(component);
    case 'Sequence':
      return sequence(component);
    default:
      throw component.unread(`the post-processor ${component.type}`);
  }
}

function sequence(component: Component): Around {
  const adding = component
    .components('processors')
    .map(aroundOf)
    .filter(({ before, after }) => before.length + after.length > 0);
  // The second one would add its tokens around each part of the first one.
  if (adding.length > 1) throw component.unread('a second processor that adds tokens');
  return adding[0] ?? NOTHING;
}

function idIn(component: Component, name: string): number {
  const id = component.list(name)[1];
  if (typeof id !== 'number') throw component.bad(name);
  return id;
}

function template(component: Component): Around {
  const special = component.component('special_tokens');
  const around: Around = { before: [], after: [] };
  let texts = 0;
  for (const piece of component.components('single')) {
    const token = piece.optional('SpecialToken');
    if (token) {
      const ids = special.component(token.string('id')).list('ids') as number[];
      (texts > 0 ? around.after : around.before).push(...ids);
    } else if (piece.component('Sequence').oneOf('id', ['A'])) texts++;
  }
  if (texts !== 1) throw component.unread(`a template with ${texts} texts instead of one`);
  return around;
}
