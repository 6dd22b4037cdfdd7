/** Small helpers to build pages. Text is always set as text, so nothing that the API answers can become markup. */

const SVG_NAMESPACE = 'http://www.w3.org/2000/svg';

/**
 * An HTML element. Properties that begin with `on` are listeners, the others are attributes; null and false leave one out.
 * @param {string} tag
 * @param {Record<string, unknown>} [properties]
 * @param {...(Node | string | null | false | undefined)} children
 */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An SVG element; otherwise like `h`. */
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG_NAMESPACE, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Puts new children in place of all that an element has. */
export function replace(element, ...children) {
  element.replaceChildren(
    ...children.filter((child) => child !== null && child !== undefined && child !== false),
  );
}

/** The coloured word for a job's state. */
export function stateBadge(state) {
  return h('span', { class: `badge ${state}` }, state);
}

/** A bar that is filled to `percent`; empty for null. */
export function progressBar(percent, label) {
  const fillBar = h('div');
  // Set through the object model: the content security policy allows no style attributes.
  fillBar.style.width = `${percent ?? 0}%`;
  return h(
    'div',
    {
      class: 'progress',
      role: 'progressbar',
      'aria-valuenow': Math.round(percent ?? 0),
      'aria-label': label,
    },
    fillBar,
  );
}

/** A notice that something went wrong. */
export function errorNotice(error) {
  return h('p', { class: 'notice error', role: 'alert' }, error.message);
}
