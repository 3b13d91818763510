// The window's title: how many wait for a person (../data/desk-count.ts), then the page's own title
// (layout.tsx).
let page = document.title;
let waiting = 0;

const write = (): void => {
  document.title = waiting > 0 ? `(${waiting}) ${page}` : page;
};

export function titlePage(title: string): void {
  page = title;
  write();
}

export function titleWaiting(count: number): void {
  waiting = count;
  write();
}
