-- What pandoc leaves undone on its way from Markdown to Typst.

local function quoted(text)
  return '"' .. text:gsub("\\", "\\\\"):gsub('"', '\\"'):gsub("%s+", " ") .. '"'
end

-- A formula as pandoc writes it → as Typst has to read it.
local function mended(formula)
  -- \bigl( comes as a scaled word of text: without room of its own, and "parallel" for \|.
  local scaled = "#scale%(x: (%d+)%%, y: %d+%%%)%["
  formula = formula:gsub(scaled .. "(\\.)%]", "big(#%1%%, %2)")
  formula = formula:gsub(scaled .. "([^%]\\]+)%]", "big(#%1%%, %2)")
  -- | comes as a relation, with room on both sides; the columns of cases come with none.
  formula = formula:gsub("\\|", "single")
  formula = formula:gsub("cases%b()", function(cases) return (cases:gsub("&", "& quad")) end)
  -- \; and \! come as whole ems.
  formula = formula:gsub("#h%(0em%)", "thick"):gsub("#h%(%-1em%)", "#h(-0.167em)")
  -- q'^\top comes with an empty word between the prime and the exponent.
  formula = formula:gsub([['(_?%w*) ""%^]], "'%1^")
  -- \odot comes by a name that Typst has given up.
  formula = formula:gsub("dot%.circle", "dot.o")
  -- \operatorname comes as a word, without the room that an operator has around it.
  formula = formula:gsub('upright%("', "upright(\0")
  return (formula:gsub('"(%a[%a ]*)"', 'op("%1")'):gsub("%z", '"'))
end

-- Each formula has its TeX as what a screen reader says.
function Math(element)
  local plain = pandoc.Pandoc { pandoc.Plain { element } }
  local formula = pandoc.write(plain, "typst"):gsub("%s+$", "")
  if formula:sub(1, 1) ~= "$" then
    error("Typst has no formula for " .. element.text)
  end
  local kind = element.mathtype == "DisplayMath" and "shown" or "formula"
  return pandoc.RawInline("typst", "#" .. kind .. "(" .. quoted(element.text) .. ", " .. mended(formula) .. ")")
end

-- A picture keeps its words.
function Image(element)
  local words = quoted(pandoc.utils.stringify(element.caption))
  return pandoc.RawInline("typst", "#image(" .. quoted(element.src) .. ", alt: " .. words .. ")")
end

-- What is folded on a screen lies open on paper, below what one would click on.
function RawBlock(element)
  local summary = element.format == "html" and element.text:match("<summary>(.-)</summary>")
  return summary and pandoc.Para { pandoc.Strong { pandoc.Str(summary) } } or nil
end
